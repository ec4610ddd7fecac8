"""Real processes of `tidings`: started, watched, killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.environment import clean_environment


class Running:
    """One process; its log is kept in a file, one JSON object a line."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self.log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    def events(self) -> list[dict[str, Any]]:
        """Return what it has logged."""
        lines = self.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    @property
    def has_started(self) -> bool:
        return any(event["event"] == "started" for event in self.events())

    async def kill(self) -> None:
        """End it the hard way."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def stop(self, seconds: float = 40) -> int:
        """End it the polite way; return its exit code."""
        if self.is_alive:
            self._process.send_signal(signal.SIGTERM)
        return await self.ended(seconds)

    async def ended(self, seconds: float = 40) -> int:
        """Wait until it has ended by itself; return its exit code."""
        async with asyncio.timeout(seconds):
            return await self._process.wait()


class Fleet:
    """Starts processes in one folder; `async with fleet(folder) as f: await f.start("run", "--role", "work")`."""

    def __init__(self, folder: Path, held: AsyncExitStack) -> None:
        self._folder = folder
        self._held = held
        self._count = 0

    async def start(self, *arguments: str, **environment: str) -> Running:
        """Start one command with JSON logs; settings may be given as environment."""
        self._count += 1
        log = self._folder / f"{self._count}.log"
        with log.open("wb") as opened:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tidings", *arguments,
                cwd=self._folder, env=clean_environment(**{"TIDINGS_LOG_FORMAT": "json"} | environment),
                stdin=asyncio.subprocess.DEVNULL, stdout=opened, stderr=opened,
            )  # fmt: skip
        running = Running(process, log)
        self._held.push_async_callback(running.kill)
        return running


@asynccontextmanager
async def fleet(folder: Path) -> AsyncIterator[Fleet]:
    """Give a fleet; whatever still runs at the end is killed."""
    async with AsyncExitStack() as held:
        yield Fleet(folder, held)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
