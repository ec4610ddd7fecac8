"""What storms are made of: a pipeline whose copies take turns, with a source and notices, and the roles of processes.

A process says `ready OWNER`, then what happened; a line is written only after the store has answered.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple
from zlib import crc32

from tests.support.engine import discord_channel
from tests.support.example import hear, pipeline, thing
from tests.support.own_sql import own_sql

from tidings.app import App
from tidings.model.contracts import Kit
from tidings.model.outcome import Outcome
from tidings.model.pipeline import Page, Pipeline, Run, Schedule
from tidings.model.publication import Notice, Route
from tidings.model.workflow import Work
from tidings.process.lanes import LANES, Lane
from tidings.process.loops import Loop, run_loops
from tidings.wiring import Wiring

COPIES = ("first", "second")
ROOMS = 24
"""So many that rooms are left whose last sender was not killed in them: each keeps others out for two minutes."""
ANNOUNCED_OF = 40
PAGE = 10
BACKLOG = 200
"""Uploads wait while so many items are due: there is always work to be killed over, and never a mountain of it."""
PAGE_SECONDS = 0.05
STEP_SECONDS = 0.002
LEASE_SECONDS = 2.0
TURN_SECONDS = 1.0
SOURCE = "example.numbers"


class Room(NamedTuple):
    """One channel of the stand-in."""

    name: str
    webhook_url: str


@dataclass(frozen=True)
class Numbers:
    """A source without end: it goes on from its cursor, a few pages a run."""

    name: str = SOURCE
    schedule: Schedule = Schedule(every_seconds=1)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:  # a source's form
        """Yield the next numbers."""
        first = run.cursor or 0
        for start in range(first, first + 10 * PAGE, PAGE):
            await asyncio.sleep(PAGE_SECONDS)
            yield Page(tuple(thing(f"p{number}", "polled") for number in range(start, start + PAGE)), start + PAGE)


def announced(work: Work) -> tuple[Notice, ...]:
    """Announce some of the things, each in a room of its own choice."""
    number = crc32(work.key.encode())
    if number // ROOMS % ANNOUNCED_OF:
        return ()
    return (Notice(title=work.key, attributes={"type": f"room{number % ROOMS}"}),)


def slowly(work: Work) -> Outcome:
    """Take a moment for each copy: processes are to be killed while they hold work, not while they wait for it."""
    time.sleep(STEP_SECONDS)
    return hear(work)


def storm_pipeline(*, fuse: bool = False) -> Pipeline:
    """Declare the example with slow steps, copies in turn, a source, and notices."""
    declared = pipeline(Numbers(), fuse=fuse, in_turn=True, announce={"thing": announced})
    thing_workflow = declared.workflows["thing"]
    steps = tuple(replace(t, processor=slowly) if t.processor is hear else t for t in thing_workflow.transitions)
    return replace(declared, workflows={"thing": replace(thing_workflow, transitions=steps)})


OWN_LANES: dict[str, dict[str, Lane]] = {
    # Small batches: a large one would take longer than its lease, and who works ahead would rarely begin one.
    "work": {"pure": Lane(concurrency=4, batch=20)},
    "ahead": {"pure": Lane(concurrency=1, batch=5)},
}


def storm_wiring(url: str, rooms: list[Room], place: tuple[str, int], *, role: str = "") -> Wiring:
    """Return the values of one process."""
    return Wiring(
        database_url=url,
        pipelines=(storm_pipeline(fuse=role == "ahead"),),
        durability="crash-safe",
        grant_seconds=LEASE_SECONDS,
        turn_seconds=TURN_SECONDS,
        lanes=OWN_LANES.get(role, LANES),
        channels=tuple(discord_channel(room.name, room.webhook_url) for room in rooms),
        routes=tuple(Route("example", room.name, f"type:{room.name}") for room in rooms),
        loopback_allowed=frozenset({place}),
        per_host_delay_seconds=0.0,
        obey_robots=False,
        sweep_seconds=0.2,
    )


async def play(role: str, wiring: Wiring) -> None:
    """Play one role until killed."""
    async with App(wiring) as app:
        loops: dict[str, list[Loop]] = {
            "work": [app.worker().run, app.sweeper.run, app.hints.run],
            "ahead": [app.worker().run, app.sweeper.run, app.hints.run],
            "send": [app.worker(only_lane="notify").run, app.hints.run],
            "poll": [app.poller.run],
            "upload": [partial(upload, app)],
        }
        say(f"ready {app.owner}")
        await run_loops(loops[role], asyncio.Event())


async def upload(app: App, stop: asyncio.Event) -> None:
    """Upload pages of new things, and with each the second copies of the page before, which are being worked on."""
    for page in itertools.count():
        findings = [thing(key, COPIES[0]) for key in page_keys(app.owner, page)]
        if page:
            findings += [thing(key, COPIES[1]) for key in page_keys(app.owner, page - 1)]
        await app.executor.write(app.store.intake.append, "example", findings)
        say(f"accepted {page}")
        while await app.executor.read(_backlog, app) >= BACKLOG:
            if stop.is_set():
                return
            await asyncio.sleep(0.01)


def page_keys(owner: str, page: int) -> list[str]:
    """Return the keys of one page of one uploader."""
    return [f"{owner}-{page}-{number}" for number in range(PAGE)]


def _backlog(app: App) -> int:
    due = "SELECT 1 FROM items WHERE due_at IS NOT NULL AND lease_until IS NULL AND lane = 'pure' LIMIT :limit"
    with app.database.reading() as tx:
        count = int(own_sql(tx, f"SELECT count(*) FROM ({due}) AS due", {"limit": BACKLOG})[0][0])
    return count + app.store.intake.unmerged("example")


def say(text: str) -> None:
    """Write one line at once and whole, with the number of this process: many share the pipe."""
    os.write(1, f"{os.getpid()} {text}\n".encode())
