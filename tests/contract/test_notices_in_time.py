"""A worker that ends when nothing is due waits for notices that only keep to their channel's rate."""

from __future__ import annotations

import asyncio
import time

from tests.support.engine import Engine
from tests.support.example import ThingSource, thing

from tidings.model.contracts import Kit
from tidings.model.outcome import Advance, Outcome, Postpone
from tidings.model.pipeline import Page, Pipeline
from tidings.model.workflow import Transition, Work, Workflow

RATE_MS = 400


async def tell(work: Work, kit: Kit) -> Outcome:
    """Send nothing before a moment has passed, as a channel at its rate."""
    wait_ms = 7_200_000 if work.key == "late" else RATE_MS
    waited = work.now_ms - work.state_since_ms
    return Advance() if waited >= wait_ms else Postpone(work.now_ms + wait_ms - waited, "the channel is at its rate")


def telling(source: ThingSource) -> Pipeline:
    life = Workflow(
        kind="thing",
        start="queued",
        states=("queued", "sent"),
        transitions=(Transition("tell", "queued", "sent", processor=tell, lane="notify"),),
        terminal=frozenset({"sent"}),
    )
    return Pipeline("example", "Example", "It tells.", workflows={"thing": life}, sources=(source,))


async def test_notices_due_within_a_minute_are_waited_for(database_url: str) -> None:
    source, waits = ThingSource(all_pages=[Page((thing("soon"), thing("late")))]), list[float]()
    async with Engine(database_url, [telling(source)]) as engine:
        await engine.discover()
        await engine.work_until_idle()
        assert engine.states("thing") == {"queued": 2}, "nothing is due at this moment"

        await engine.app.worker().until_idle(wait_for_notices_seconds=60, on_wait=waits.append)

        assert {row.key: row.state for row in engine.items("thing")} == {"soon": "sent", "late": "queued"}
        assert waits
        assert max(waits) <= RATE_MS / 1000


async def test_a_worker_that_waits_for_notices_can_be_stopped(database_url: str) -> None:
    source, stop = ThingSource(all_pages=[Page((thing("late"),))]), asyncio.Event()
    async with Engine(database_url, [telling(source)]) as engine:
        await engine.discover()
        await engine.work_until_idle()
        started = time.monotonic()
        waiting = asyncio.create_task(
            engine.app.worker().until_idle(
                wait_for_notices_seconds=86_400, on_wait=lambda _seconds: stop.set(), stop=stop
            )
        )
        await asyncio.wait_for(waiting, 60)
        assert time.monotonic() - started < 60
        assert engine.states("thing") == {"queued": 1}
