"""Processes that start in a moment: everything is imported once, and each is forked from there.

`python -m tests.acceptance.storm_processes` reads lines from stdin: `start ROLE URL HOST PORT WEBHOOK...` forks a
process and answers `born PID`; `kill PID` kills one and answers `ended PID HOW`. It has no threads and no connections,
so a fork is safe; each process opens its own database. When stdin ends, all of them are killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeVar

from tests.acceptance.storm_world import Room, play, say, storm_wiring
from tests.support.environment import ROOT, clean_environment

T = TypeVar("T")


def main() -> None:
    """Obey until stdin ends."""
    living: set[int] = set()
    try:
        for line in sys.stdin:
            match line.split():
                case ["start", role, url, host, port, *webhooks]:
                    living.add(_start(role, url, (host, int(port)), webhooks))
                case ["kill", pid]:
                    living.discard(int(pid))
                    say(f"ended {pid} {_kill(int(pid))}")
    finally:
        for pid in living:
            _kill(pid)


def _start(role: str, url: str, place: tuple[str, int], webhooks: list[str]) -> int:
    child = os.fork()
    if child == 0:
        _be(role, url, place, webhooks)
    say(f"born {child}")
    return child


def _be(role: str, url: str, place: tuple[str, int], webhooks: list[str]) -> NoReturn:
    try:
        rooms = [Room(f"room{number}", webhook) for number, webhook in enumerate(webhooks)]
        asyncio.run(play(role, storm_wiring(url, rooms, place, role=role)))
    except BaseException:  # whatever it is, the parent's end must not run here
        traceback.print_exc()
    os._exit(70)


def _kill(pid: int) -> int:
    """Kill a process; return how it ended: the number of the signal, negative, or its own exit code."""
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Child:
    """One forked process, as the test sees it."""

    def __init__(self, pid: int, role: str) -> None:
        self.pid = pid
        self.role = role
        self.owner = ""
        self.ready = asyncio.Event()
        self.accepted = 0
        """How many pages were acknowledged."""

    def hear(self, words: list[str]) -> None:
        """Take note of a line it wrote."""
        match words:
            case ["ready", owner]:
                self.owner = owner
                self.ready.set()
            case ["accepted", page]:
                self.accepted = int(page) + 1


class Nursery:
    """Starts and kills: `async with nursery() as n: child = await n.start("work", ...)`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._children: dict[int, Child] = {}
        self._births: deque[tuple[str, asyncio.Future[Child]]] = deque()
        self._ends: dict[int, asyncio.Future[int]] = {}
        self._early: dict[int, list[list[str]]] = {}
        """What a process wrote before its birth was announced."""
        self.listening = asyncio.create_task(self._listen())

    async def start(self, role: str, *words: str) -> Child:
        """Start a process."""
        born: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        self._births.append((role, born))
        self._tell("start", role, *words)
        return await self._answer(born)

    async def kill(self, child: Child) -> int:
        """Kill a process; return how it ended."""
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._ends[child.pid] = ended
        self._tell("kill", str(child.pid))
        return await self._answer(ended)

    async def _answer(self, answer: asyncio.Future[T]) -> T:
        """Wait for an answer; without anybody who listens it would never come."""
        waited: list[asyncio.Future[Any]] = [answer, self.listening]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            self.listening.result()
            raise EOFError("the nursery has ended")
        return answer.result()

    def _tell(self, *words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write((" ".join(words) + "\n").encode())

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            match line.decode().split():
                case [_, "born", pid]:
                    role, born = self._births.popleft()
                    child = self._children[int(pid)] = Child(int(pid), role)
                    for words in self._early.pop(child.pid, []):
                        child.hear(words)
                    born.set_result(child)
                case [_, "ended", pid, code]:
                    del self._children[int(pid)]
                    self._ends.pop(int(pid)).set_result(int(code))
                case [pid, *words] if int(pid) in self._children:
                    self._children[int(pid)].hear(words)
                case [pid, *words]:
                    self._early.setdefault(int(pid), []).append(words)


@asynccontextmanager
async def nursery() -> AsyncIterator[Nursery]:
    """Open a nursery; at the end everything that was started is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.acceptance.storm_processes",
        cwd=ROOT, env=clean_environment(),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    opened = Nursery(process)
    try:
        yield opened
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await opened.listening


if __name__ == "__main__":
    main()
