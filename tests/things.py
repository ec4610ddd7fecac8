"""Processes of `tests.things_process`: started, heard, killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Process:
    """One process of `tests.things_process`."""

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
    process = Process(
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.things_process",
            *words,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"},
            stdout=asyncio.subprocess.PIPE,
        )
    )
    try:
        yield process
    finally:
        process.send(signal.SIGKILL)
        await process.ended()


async def until(holds: Callable[[], bool], seconds: float = 150) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  # the fact is in the database
            await asyncio.sleep(0.05)
