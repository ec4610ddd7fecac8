"""Real processes over the example pipeline, to be raced and killed.

`python -m tests.acceptance.example_processes ROLE URL [FIRST COUNT]` is one of them, by its role:
`update` appends a share of the findings in pages, trimming as it goes, and names what was acknowledged;
`work` merges and processes until it is told to stop; `ahead` does, and runs new things before they are born;
`rewrite` gives a share of the things new texts, again and again: the full text index never rests.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from tests.support.environment import ROOT, clean_environment
from tests.support.example import pipeline, thing

from tidings.app import App
from tidings.process.lanes import LANES, Lane
from tidings.process.loops import Loop, run_loops
from tidings.wiring import Wiring

PAGE = 20
LEASE_SECONDS = 2.0


async def update(app: App, first: int, count: int) -> None:
    """Append `count` findings from number `first` on; a line on stdout means that page was acknowledged."""
    for start in range(first, first + count, PAGE):
        page = [thing(f"k{number}") for number in range(start, min(start + PAGE, first + count))]
        await app.executor.write(app.store.intake.trim, "example")
        await app.executor.write(app.store.intake.append, "example", page)
        sys.stdout.write("".join(f"{finding.key}\n" for finding in page))
        sys.stdout.flush()


async def rewrite(app: App, first: int, count: int, stop: asyncio.Event) -> None:
    """Append `count` things with new texts, in small pages with room between them, until told to stop."""
    for turn in itertools.count():
        page = [thing(f"k{number}", f"turn {turn} " * 20) for number in range(first, first + count)]
        await app.executor.write(app.store.intake.append, "example", page)
        while await app.executor.read(app.store.intake.unmerged, "example"):
            if stop.is_set():
                return
            await asyncio.sleep(0.02)
        sys.stdout.write(f"turn {turn}\n")
        sys.stdout.flush()


async def main(role: str, url: str, first: int, count: int) -> None:
    """Play one role."""
    wiring = Wiring(
        database_url=url,
        pipelines=(pipeline(fuse=role == "ahead"),),
        durability="crash-safe",
        grant_seconds=LEASE_SECONDS,
        lanes={"pure": Lane(concurrency=1, batch=5) if role == "ahead" else LANES["pure"]},
        intake_days=0,
        sweep_seconds=0.2,
    )
    async with App(wiring) as app:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        sys.stdout.write(f"ready {app.owner}\n")
        sys.stdout.flush()
        if role == "update":
            await update(app, first, count)
            return
        loops: list[Loop] = [app.worker().run, app.sweeper.run, app.hints.run]
        if role == "rewrite":
            loops.append(partial(rewrite, app, first, count))
        await run_loops(loops, stop)


class Process:
    """One of them, as a test sees it: its owner once it is ready, and the lines it wrote."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.owner = ""
        self.said: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode().strip()
            if text.startswith("ready "):
                self.owner = text.removeprefix("ready ")
            else:
                self.said.append(text)

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def ended(self) -> int:
        code = await self._process.wait()
        await self._reading
        return code


@asynccontextmanager
async def started(*words: str) -> AsyncIterator[Process]:
    """Start one with its role and the rest of its arguments; it does not outlive the block."""
    process = Process(
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.acceptance.example_processes",
            *words,
            cwd=ROOT,
            env=clean_environment(),
            stdout=asyncio.subprocess.PIPE,
        )
    )
    try:
        yield process
    finally:
        process.send(signal.SIGKILL)
        await process.ended()


if __name__ == "__main__":
    role, url, *numbers = sys.argv[1:]
    first, count = (int(number) for number in numbers) if numbers else (0, 0)
    asyncio.run(main(role, url, first, count))
