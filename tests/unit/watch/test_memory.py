"""Memory that was freed goes back to the system; tried in a process of its own, whose memory nobody else uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio
from tidings.watch.memory import bound_memory, trim_memory

def resident_mb():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))

async def main():
    is_bound = bound_memory()
    before = resident_mb()
    blocks = [bytes(30_000) for _ in range(4_000)]
    pins = blocks[::50]
    full = resident_mb()
    del blocks
    freed = resident_mb()
    stop = asyncio.Event()
    trimming = asyncio.create_task(trim_memory(stop, seconds=0.05))
    for _ in range(200):
        await asyncio.sleep(0.05)
        if resident_mb() < before + 20:
            break
    stop.set()
    await trimming
    print(is_bound, full - before, freed - before, resident_mb() - before, len(pins))

asyncio.run(main())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc keeps what is freed")
def test_freed_memory_goes_back_to_the_system() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)

    is_bound, full, freed, trimmed, _pins = ended.stdout.split()
    assert is_bound == "True"
    assert float(full) > 100
    assert float(freed) > 50, "nothing was held on to: the test shows nothing"
    assert float(trimmed) < 20
