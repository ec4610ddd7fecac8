"""A server, two workers and a client that uploads without pause, in front of a database to which things happen."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from tests.support.environment import ROOT, clean_environment
from tests.support.processes import Running, free_port
from tests.support.waiting import until

ENOUGH = 30
"""Uploads accepted before something happens, and after it is over."""
TROUBLE = ("no answer from PostgreSQL", "claiming failed", "settling failed", "store unavailable")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case cost."""

    case: str
    counted_from: str
    accepted_seconds: float
    processed_seconds: float
    accepted: int
    lost: int
    settled_twice: int

    @staticmethod
    def table(outcomes: Sequence[Outcome]) -> list[str]:
        """Write the table for the documentation."""
        lines = [
            "| what happens | counted from | next accepted | next processed | accepted in all | lost | settled twice |",
            "|---|---|---|---|---|---|---|",
        ]
        return lines + [
            f"| {o.case} | {o.counted_from} | {o.accepted_seconds:.1f} s | {o.processed_seconds:.1f} s "
            f"| {o.accepted} | {o.lost} | {o.settled_twice} |"
            for o in outcomes
        ]


class Scene:
    """What runs, and what the client was told."""

    def __init__(self, folder: Path, inside: Sequence[str], held: AsyncExitStack, environment: dict[str, str]) -> None:
        self._folder = folder
        self._inside = inside
        self._held = held
        self._environment = environment
        self.port = free_port()
        self.processes: list[Running] = []
        self._acknowledged = folder / "acknowledged"

    async def start(self, name: str, *words: str) -> Running:
        """Start one program; its output goes to a file of its own."""
        log = self._folder / name
        with log.open("wb") as opened:
            process = await asyncio.create_subprocess_exec(
                *self._inside, sys.executable, "-m", *words, cwd=self._folder, stdin=asyncio.subprocess.DEVNULL,
                stdout=opened, stderr=asyncio.subprocess.STDOUT if words[0] == "tidings" else None,
                env=clean_environment(PYTHONPATH=f"{ROOT / 'src'}:{ROOT}", TIDINGS_LOG_FORMAT="json",
                                      TIDINGS_SERVER__PORT=str(self.port))
                | (self._environment if words[0] == "tidings" else {}),
            )  # fmt: skip
        running = Running(process, log)
        self._held.push_async_callback(running.kill)
        return running

    def acknowledged(self) -> list[tuple[int, float]]:
        """Return id and moment of each upload that was accepted."""
        lines = self._acknowledged.read_text().splitlines()
        return [(int(words[0]), float(words[1])) for line in lines if len(words := line.split()) == 2]

    def since(self, moment: float) -> list[tuple[int, float]]:
        """Return what was accepted after a moment."""
        return [each for each in self.acknowledged() if each[1] > moment]

    def troubles(self) -> list[str]:
        """Return what the processes have said of trouble with the store."""
        return [e["event"] for process in self.processes for e in process.events() if e["event"] in TROUBLE]

    async def troubled(self, seconds: float = 60) -> None:
        """Wait until a process has noticed and said so."""
        await until(self.troubles, seconds=seconds, watching=tuple(self.processes))


@asynccontextmanager
async def scene(folder: Path, url: str, inside: Sequence[str] = (), **environment: str) -> AsyncIterator[Scene]:
    """Start everything, and wait until uploads are accepted and processed."""
    folder.joinpath("tidings.toml").write_text(
        'lease_seconds = 10\n[pipelines.hacker_news]\nbase_url = "http://127.0.0.1:9/v0"\nevery = 3600\n'
    )
    async with AsyncExitStack() as held:
        there = Scene(folder, inside, held, {"TIDINGS_DATABASE_URL": url} | environment)
        there.processes.append(await there.start("serve.log", "tidings", "run", "--role", "serve"))
        await until(lambda: there.processes[0].has_started, seconds=90, watching=tuple(there.processes))
        maker = await there.start(
            "token", "tidings", "token", "create", "--scope", "ingest", "--name", "cuts", "--json"
        )
        assert await maker.ended(60) == 0, maker.log.read_text()
        token = maker.log.read_text().split('"token": "')[1].split('"')[0]
        for number in range(2):
            there.processes.append(await there.start(f"work{number}.log", "tidings", "run", "--role", "work"))
        await until(lambda: all(p.has_started for p in there.processes), seconds=90, watching=tuple(there.processes))
        await there.start("acknowledged", "tests.cuts.uploader", str(there.port), token)
        await until(lambda: len(there.acknowledged()) >= ENOUGH, watching=tuple(there.processes))
        yield there


async def judged(there: Scene, case: str, counted_from: str, moment: float, address: Callable[[], str]) -> Outcome:
    """Wait until work goes on after a moment, and count what was accepted, lost and repeated."""
    await until(lambda: len(there.since(moment)) >= ENOUGH, seconds=120, watching=tuple(there.processes))
    number, at = there.since(moment)[0]
    await until(lambda: number in completed(address(), number), seconds=120)
    processed_seconds = time.monotonic() - moment
    accepted = {each for each, _ in there.acknowledged()}
    await until(lambda: accepted <= completed(address()), seconds=120)
    return Outcome(
        case, counted_from, at - moment, processed_seconds, len(accepted),
        lost=len(accepted - completed(address())), settled_twice=settled_twice(address()),
    )  # fmt: skip


def completed(address: str, only: int | None = None) -> set[int]:
    """Return the ids of items that are processed to their end."""
    asked = "SELECT key FROM items WHERE state = 'completed'" + ("" if only is None else f" AND key = '{only}'")
    return {int(row[0]) for row in _rows(address, asked)}


def settled_twice(address: str) -> int:
    """Count lease tokens that were closed more than once, and states reached more than once by one revision."""
    closed = Counter(_rows(address, "SELECT item, token FROM journal WHERE kind IN ('attempt', 'born') AND token > 0"))
    born = Counter(_rows(address, "SELECT item FROM journal WHERE kind = 'born'"))
    return sum(count > 1 for count in [*closed.values(), *born.values()])


def _rows(address: str, select: str) -> list[Any]:
    with psycopg.connect(address, connect_timeout=5) as connection:
        return connection.execute(select).fetchall()


def is_full() -> bool:
    """Tell whether every case is asked for, or only the few that CI has time for."""
    return os.environ.get("TIDINGS_CUTS") == "full"
