"""A worker killed at each point around the POST: what the crash table promises, counted, on both databases."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.acceptance.funding_world import PIPELINE, World, a_result, a_world
from tests.support.environment import ROOT, clean_environment

from tidings.publish.sending import Policy
from tidings.sample.discord import FaultName
from tidings.sample.eu_portal import EuPortal

pytestmark = pytest.mark.slow
LEASE_SECONDS = 900

POINTS: list[tuple[str, FaultName | None, int, int]] = [
    ("claimed", None, 1, 1),
    ("written", "hang", 1, 1),
    ("written", "store_then_hang", 2, 1),
    ("answered", None, 2, 1),
    ("settling", None, 2, 1),
    ("settled", None, 1, 0),
]
"""Where the worker dies, what Discord does, how often the message is posted in the end, how many doubts are counted."""


@pytest.mark.parametrize(("dies", "fault", "posted", "ambiguous"), POINTS)
async def test_a_kill_around_the_post_repeats_at_most_what_is_counted(
    database_url: str, dies: str, fault: FaultName | None, posted: int, ambiguous: int
) -> None:
    async with a_queued_delivery(database_url) as world:
        await killed(world, database_url, dies, fault)
        world.opened.advance_clock(seconds=LEASE_SECONDS + 1)
        swept = await world.opened.sweep()
        await world.settle_down()

        (delivery,) = world.opened.store.item_views.deliveries()
        assert swept.ambiguous == ambiguous
        assert (delivery.state, delivery.standing, delivery.ambiguous) == ("sent", "done", ambiguous)
        assert len(world.discord.messages) == posted
        assert delivery.message_id == world.discord.messages[-1].id
        assert len({message.delivery_id for message in world.discord.messages}) == 1, "the footer shows the repeat"


@pytest.mark.parametrize(
    ("dies", "fault", "posted"), [("claimed", None, 0), ("written", "store_then_hang", 1), ("answered", None, 1)]
)
async def test_at_most_once_leaves_each_doubt_to_a_person(
    database_url: str, dies: str, fault: FaultName | None, posted: int
) -> None:
    async with a_queued_delivery(database_url, policy="at-most-once") as world:
        await killed(world, database_url, dies, fault, policy="at-most-once")
        world.opened.advance_clock(seconds=LEASE_SECONDS + 1)
        await world.opened.sweep()
        await world.settle_down()
        (group,) = world.opened.store.item_views.dead_letters()
        assert (group.cause, group.count) == ("ambiguous", 1)
        assert len(world.discord.messages) == posted
        assert world.opened.store.item_views.deliveries()[0].ambiguous == 1

        world.opened.store.operations.revive(cause="ambiguous", actor="test")
        await world.settle_down()
        assert len(world.discord.messages) == posted + 1
        assert world.opened.store.item_views.dead_letters() == []


def a_queued_delivery(database_url: str, **options: Any) -> Any:
    return _Queued(database_url, options)


class _Queued:
    """A world in which one delivery waits to be sent."""

    def __init__(self, database_url: str, options: dict[str, Any]) -> None:
        now = datetime.now(UTC)
        self._opening = a_world(database_url, EuPortal.of([a_result(1, now=now)]), at=now, **options)

    async def __aenter__(self) -> World:
        world = await self._opening.__aenter__()
        await world.crawl()
        world.opened.store.intake.merge(PIPELINE)
        for lane in ("ai", "pure"):
            await world.opened.app.worker(only_lane=lane).until_idle()
        assert world.opened.states("delivery") == {"queued": 1}
        return world

    async def __aexit__(self, *ending: Any) -> None:
        await self._opening.__aexit__(*ending)


async def killed(
    world: World, database_url: str, dies: str, fault: FaultName | None, policy: Policy = "at-least-once"
) -> None:
    """Run a worker in a process of its own until it is dead."""
    if fault is not None:
        world.discord.script(fault)
    posting = world.discord.next_request()
    told = {
        "database_url": database_url,
        "portal_url": world.opened.wiring.endpoints[0],
        "webhook": world.opened.wiring.channels[0].settings.model_dump()["webhook_url"].get_secret_value(),
        "policy": policy,
        "dies": dies,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.acceptance.funding_worker", json.dumps(told), cwd=ROOT, env=clean_environment()
    )
    if dies == "written":
        async with asyncio.timeout(60):
            await posting.wait()
        process.kill()
    assert await process.wait() in (-9, 9)
