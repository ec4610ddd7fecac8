"""A virtual week of 84 crawls with random faults: nothing lost, nothing repeated uncounted, nothing grows for ever."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response
from tests.acceptance.funding_world import HARVEST, PIPELINE, World, a_result, a_world, day
from tests.support.own_sql import own_sql

from tidings.sample.discord import FaultName
from tidings.sample.eu_portal import EuPortal

pytestmark = pytest.mark.slow
CRAWLS = 84
EVERY = timedelta(hours=2)
SEARCH = "/search-api/prod/rest/search"
DISCORD_FAULTS: tuple[FaultName, ...] = (
    "429", "global_429", "html_429", "404", "500", "502", "reset",
    "store_then_502", "store_then_reset", "store_then_cut",
)  # fmt: skip
TABLES = ("intake", "items", "bodies", "links", "journal", "tombstones", "shelf", "caches", "limiters", "cursors")


class Week:
    """What happened, by the outside's own account."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.numbers = iter(range(1_000, 10_000))
        self.new: list[int] = []
        self.moves: Counter[str] = Counter()
        self.deadlines: dict[str, str] = {}
        self.failed_runs = 0
        self.pauses = 0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.world.now(), HARVEST.tzinfo)

    async def step(self) -> None:
        """Two hours: the portal changes, both services misbehave, a worker may vanish."""
        ends = self.world.now() + EVERY.total_seconds()
        self.change_the_portal()
        self.misbehave()
        run = await self.world.crawl()
        self.failed_runs += run.error is not None
        await self.world.settle_down(hours=0.5)
        if self.rng.random() < 0.15:
            self.lose_a_worker()
        await self.world.settle_down(hours=1)
        await self.look_after_channels()
        self.world.opened.advance_clock(seconds=max(0.0, ends - self.world.now()))
        await self.world.opened.sweep()

    def change_the_portal(self) -> None:
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            number = next(self.numbers)
            self.world.portal.put(a_result(number, now=self.now()))
            self.new.append(number)
        if self.new and self.rng.random() < 0.2:
            reference = f"{self.rng.choice(self.new)}TOPICSen"
            moved = day(self.now(), 100 + sum(self.moves.values()), "17:00")
            self.world.portal.change(reference, deadlineDate=[moved])
            self.moves[reference] += 1
            self.deadlines[reference] = moved

    def misbehave(self) -> None:
        if self.rng.random() < 0.3:
            answers: list[Response] = [HTMLResponse("", 504), HTMLResponse("<html>", 200), JSONResponse({}, 500)]
            answers.append(HTMLResponse("", 429, headers={"Retry-After": "30"}))
            self.world.portal.faults.script(SEARCH, *self.rng.choices(answers, k=self.rng.randint(1, 9)))
        if self.rng.random() < 0.4:
            self.world.discord.script(*self.rng.choices(DISCORD_FAULTS, k=self.rng.randint(1, 4)))

    def lose_a_worker(self) -> None:
        """Leave leases behind that nobody will settle, as a killed process does."""
        for lane in ("ai", "notify"):
            self.world.opened.store.items.claim(PIPELINE, lane, 2, "vanished", 900)

    async def look_after_channels(self) -> None:
        """An operator mends a webhook that was refused."""
        (channel,) = self.world.opened.store.status_views.channels()
        if channel.paused:
            self.pauses += 1
            self.world.opened.store.switches.resume("channel:eu")


@pytest.mark.parametrize("seed", [7])
async def test_a_week_of_faults_loses_and_repeats_nothing_uncounted(database_url: str, seed: int) -> None:
    rows = [a_result(n, startDate=[day(HARVEST, -40)]) for n in range(60)]
    async with a_world(database_url, EuPortal.of(rows, disorder=3)) as world:
        await world.crawl()
        await world.settle_down()
        week = Week(world, seed)
        for number in range(CRAWLS):
            await week.step()
            if number % 12 == 11:
                await world.opened.tidy()
        await the_dust_settles(week)

        assert world.now() - HARVEST.timestamp() >= 7 * 86_400
        assert week.failed_runs > 3
        assert week.pauses > 0
        assert world.opened.states("opportunity") == {"published": 60 + len(week.new)}
        told = Counter(world.titles())
        assert all(told[f"Call {number}"] >= 1 for number in week.new), "nothing new is lost"
        assert all(told[f"Call {number}"] == 0 for number in range(60)), "the baseline stays silent"
        check_updates(week)
        check_repeats(world)
        await check_growth(world)


async def the_dust_settles(week: Week) -> None:
    """Faults end, windows pass, an operator revives what was buried."""
    world = week.world
    world.portal.faults.clear()
    world.discord.faults.clear()
    for _ in range(2):
        await world.crawl()
        world.opened.advance_clock(seconds=1_000)
        await world.opened.sweep()
        await week.look_after_channels()
        world.opened.store.operations.revive(actor="test")
        await world.settle_down(hours=24)


def check_updates(week: Week) -> None:
    """Each moved deadline was told, and each at most once."""
    by_title: dict[str, set[str]] = {}
    last: dict[str, str] = {}
    for posted in week.world.discord.messages:
        shown = posted.body["embeds"][0]
        if shown["title"].startswith("Update: "):
            title = shown["title"].removeprefix("Update: Call ")
            by_title.setdefault(title, set()).add(posted.delivery_id)
            last[title] = shown["description"]
    assert week.moves
    for reference, moves in week.moves.items():
        title = reference.removesuffix("TOPICSen")
        if title in by_title:
            assert len(by_title[title]) <= moves
            moment = datetime.fromisoformat(week.deadlines[reference])
            assert f"→ {moment.day} {moment:%B %Y}, 17:00 Brussels time." in last[title]
    told = sum(len(ids) for ids in by_title.values())
    assert told >= len(week.moves) * 0.6, "a move may coincide with the first announcement, few do"


def check_repeats(world: World) -> None:
    """Discord kept each delivery at most once more than its outcome was in doubt."""
    deliveries = world.opened.store.item_views.deliveries(limit=10_000)
    doubts = {world.body(d.key)["id"]: d.ambiguous for d in deliveries}
    posts = Counter(posted.delivery_id for posted in world.discord.messages)
    assert {d.standing for d in deliveries} == {"done"}
    assert all(1 <= posts[name] <= 1 + doubt for name, doubt in doubts.items())
    assert set(posts) == set(doubts)
    assert sum(posts.values()) > len(posts), "the faults did cause repeats"


async def check_growth(world: World) -> None:
    """Twelve more quiet crawls add no row anywhere; the busy week's journal stays in proportion."""
    before = counts(world)
    for _ in range(12):
        await world.crawl()
        await world.settle_down(hours=1)
        world.opened.advance_clock(seconds=EVERY.total_seconds())
    after = counts(world)
    assert all(after[table] <= before[table] for table in TABLES), (before, after)
    assert before["journal"] <= 15 * before["items"]
    assert world.opened.store.status_views.status().pipelines[PIPELINE].leased == 0


def counts(world: World) -> dict[str, Any]:
    with world.opened.app.database.reading() as tx:
        return {table: own_sql(tx, f"SELECT count(*) FROM {table}", {})[0][0] for table in TABLES}
