"""A day of Hacker News in compressed time, with outages on both sides and kills: nothing missed, nothing stale.

The day is made from a seed. A real process lives through it moment by moment, by the database's clock; it is killed in
the middle of a run, again and again, and is away for hours. Now and then the API is away, or answers single ids
wrongly. Its `updates` is a window of a hundred ids without a past, and leaves a fifth of the edits out. In the end
every item equals the API's.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from tests.support.engine import Engine
from tests.support.environment import ROOT, clean_environment
from tests.support.firebase import FirebaseApi, Trouble
from tests.support.followed_search import FollowedSearch
from tests.support.waiting import until

from tidings.model.query_tree import Words
from tidings.pipelines import hacker_news
from tidings.pipelines.hacker_news import Settings
from tidings.sample.serving import StandIn

pytestmark = [pytest.mark.slow]

MINUTE_MS = 60_000
EDITABLE_MINUTES = 110
"""So long after an item's birth an edit may pass untold: the second reading comes after two hours."""
FIRST_TIME = 1_700_000_000


class Size(NamedTuple):
    """How much happens, in how many minutes, and how many of them lie between two runs."""

    items: int
    edits: int
    deletions: int
    deaths: int
    kills: int
    minutes: int
    step: int


SMALL = Size(items=1_000, edits=75, deletions=15, deaths=10, kills=6, minutes=8 * 60, step=4)
FULL = Size(items=20_000, edits=1_500, deletions=300, deaths=200, kills=40, minutes=24 * 60, step=1)
SIZE = FULL if os.environ.get("TIDINGS_STORM") == "full" else SMALL
TIDINGS_AWAY = ((0.15, 0.01), (0.4, 0.05), (0.7, 0.2))
API_AWAY = ((0.3, 0.02), (0.55, 0.06))
"""Shares of the day: when it begins, and how long it lasts."""
FAULTS = ("500", "401", "torn", "null", "misshapen")


@dataclass
class Day:
    """The world: what happens in each minute is drawn from the seed."""

    size: Size
    rng: random.Random
    api: FirebaseApi
    minute: int = 0
    moment: int = 0
    """Counts the steps."""
    done: int = -1
    """The last step that tidings has lived through."""
    born: dict[int, int] = field(default_factory=dict)
    """The minute of each item's birth."""
    happened: Counter[str] = field(default_factory=Counter)
    queue: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        events = [("add", self.size.items), ("edit", self.size.edits), ("delete", self.size.deletions)]
        events.append(("die", self.size.deaths))
        for what, count in events:
            first = 0 if what == "add" else 5
            self.queue += [(self.rng.randrange(first, self.size.minutes), what) for _ in range(count)]
        self.queue.sort(reverse=True)
        for _ in range(20):
            self.add()

    @property
    def app(self) -> Starlette:
        """The API, and two addresses by which tidings is told the time and tells that it is done."""
        return Starlette(
            routes=[
                Route("/moment", self._tell_moment),
                Route("/done/{number:int}", self._take_done),
                Mount("/", self.api.app),
            ]
        )

    async def _tell_moment(self, _request: Request) -> Response:
        return JSONResponse({"number": self.moment, "ms": self.minute * MINUTE_MS})

    async def _take_done(self, request: Request) -> Response:
        self.done = max(self.done, request.path_params["number"])
        return JSONResponse(self.done)

    def pass_time(self, minutes: int) -> None:
        """Let everything happen that belongs to the next minutes."""
        for _ in range(minutes):
            self.minute += 1
            while self.queue and self.queue[-1][0] < self.minute:
                getattr(self, self.queue.pop()[1])()
        self.moment += 1

    def add(self) -> None:
        """Bear a story, or a reply to something recent; what it replies to changes with it."""
        number = len(self.api.items) + 1
        self.happened["items"] += 1
        if self.rng.random() < 0.01:
            self.api.plan[number] = Trouble(self.rng.choice(FAULTS), requests=self.rng.randint(1, 6))  # type: ignore[arg-type]
        words = f"word{number} and {self.rng.choice(('tides', 'sills', 'locks'))}"
        recent = [n for n in range(max(1, number - 400), number) if not self.api.items[n].get("deleted")]
        self.born[number] = self.minute
        if not recent or self.rng.random() < 0.15:
            self.api.add(number, time=FIRST_TIME + number, title=words)
            return
        parent = self.rng.choice(recent)
        comment = {"id": number, "type": "comment", "by": "b", "time": FIRST_TIME + number, "text": words}
        self.api.items[number] = {**comment, "parent": parent}
        self.api.change(parent, kids=[number, *self.api.items[parent].get("kids", [])])
        root = parent
        while "parent" in self.api.items[root]:
            root = self.api.items[root]["parent"]
        if not self.api.items[root].get("deleted") and not self.api.items[root].get("dead"):
            self.api.change(root, descendants=self.api.items[root].get("descendants", 0) + 1)

    def edit(self) -> None:
        """Change the words of an item; one edit in five passes through no `updates`."""
        number, is_told = self._one_of(EDITABLE_MINUTES), self.rng.random() > 0.2
        what = "title" if self.api.items[number]["type"] == "story" else "text"
        self.happened["edits"] += 1
        words = f"edited {self.happened['edits']} word{number}"
        if is_told:
            self.api.change(number, **{what: words})
        else:
            self.api.items[number] |= {what: words}
            self.happened["edits never told"] += 1

    def delete(self) -> None:
        """Delete an item: its place in the thread is all that stays."""
        number = self._one_of(EDITABLE_MINUTES)
        kept = {
            name: v for name, v in self.api.items[number].items() if name in ("id", "type", "time", "parent", "kids")
        }
        self.api.items[number] = {**kept, "deleted": True}
        self.happened["deletions"] += 1
        if self.rng.random() > 0.2:
            self.api.change(number)

    def die(self) -> None:
        """Let moderators kill an item, at any time of the day."""
        number = self._one_of(self.size.minutes)
        shown = {"text": "[dead]"} if self.api.items[number]["type"] == "comment" else {}
        self.happened["deaths"] += 1
        self.api.change(number, dead=True, **shown)

    def _one_of(self, minutes: int) -> int:
        """Choose a living item that is not older than so many minutes."""
        while True:
            number = self.rng.randint(1, len(self.api.items))
            item = self.api.items[number]
            if self.minute - self.born[number] < minutes and not item.get("deleted") and not item.get("dead"):
                return number
            minutes += 1 if self.minute - self.born[number] >= minutes and len(self.api.items) < 50 else 0


class Life:
    """The process, as often as it is started."""

    def __init__(self, database_url: str, base_url: str, day: Day, folder: Path) -> None:
        self._command = (sys.executable, "-m", "tests.acceptance.day_process", database_url, base_url)
        self._day, self.log = day, folder / "day.log"
        self._process: asyncio.subprocess.Process | None = None
        self.kills = 0

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        environment = clean_environment(TIDINGS_CLOCK_OFFSET_MS=str(self._day.minute * MINUTE_MS))
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, cwd=ROOT, env=environment, stdout=log, stderr=log
            )

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
            self.kills += 1

    async def live_through(self) -> None:
        """Wait until the present moment has been lived through."""
        await until(lambda: self._day.done >= self._day.moment, seconds=600, watching=(self,))

    async def kill_within(self) -> None:
        """Kill it in the middle of the present run: after some more requests for items, or at its end."""
        wanted = self._day.api.requests.total() + self._day.rng.randint(1, 60)
        await until(
            lambda: self._day.api.requests.total() >= wanted or self._day.done >= self._day.moment,
            seconds=600,
            watching=(self,),
        )
        await self.kill()


@asynccontextmanager
async def life_of(database_url: str, day: Day, folder: Path) -> AsyncIterator[Life]:
    async with StandIn(day.app) as server:
        life = Life(database_url, server.url, day, folder)
        try:
            yield life
        finally:
            await life.kill()


def is_within(spans: tuple[tuple[float, float], ...], share: float) -> bool:
    return any(begin <= share < begin + length for begin, length in spans)


async def test_after_a_day_every_item_equals_the_apis(database_url: str, tmp_path: Path) -> None:
    started = time.monotonic()
    day = Day(SIZE, random.Random(11), FirebaseApi(seed=11, updates_size=100))
    steps = SIZE.minutes // SIZE.step
    doomed = set(day.rng.sample(range(5, steps), SIZE.kills))
    async with life_of(database_url, day, tmp_path) as life:
        for step in range(steps):
            share = step / steps
            is_away, day.api.is_away = is_within(TIDINGS_AWAY, share), is_within(API_AWAY, share)
            day.pass_time(SIZE.step)
            if not is_away and not life.is_alive:
                await life.start()
            if life.is_alive and (is_away or step in doomed):
                await life.kill_within()
                continue
            if not is_away:
                await life.live_through()
        if not life.is_alive:
            await life.start()
        day.api.is_away = False
        first_day = day.api.requests.copy()
        for _ in range(180 // 4):
            day.pass_time(4)
            await life.live_through()
    assert not day.queue
    missed, stale = await judge(database_url, day)
    print(f"\n{dict(day.happened)}, {life.kills} kills, {time.monotonic() - started:.0f} s")
    print(f"requests for items: {asked(first_day) / len(day.api.items):.2f} an item in the day,", end=" ")
    print(f"{asked(day.api.requests - first_day) / len(day.api.items):.2f} in the three hours after it")
    print(f"missed {len(missed)}, stale {len(stale)}")
    assert (missed, stale) == ([], [])


def asked(requests: Counter[str]) -> int:
    return sum(count for path, count in requests.items() if path.startswith("item/"))


async def judge(database_url: str, day: Day) -> tuple[list[int], list[Any]]:
    """Compare every card with the API's item; deleted ones have lost their words, in the search too."""
    declared = hacker_news.build(Settings.model_validate({"base_url": "http://127.0.0.1:9/v0", "streams": False}))
    async with Engine(database_url, [declared], endpoints=["http://127.0.0.1:9"]) as engine:
        await engine.work_until_idle()
        cards = {card["id"]: card for card in engine.cards("items", limit=1_000_000)}
        missed = sorted(day.api.items.keys() - cards.keys())
        stale: list[Any] = [
            (n, d) for n, item in day.api.items.items() if n in cards and (d := differences(item, cards[n]))
        ]
        search = FollowedSearch(engine.store, engine.app.pipelines, engine.store.now_ms)
        deleted = [n for n, item in day.api.items.items() if item.get("deleted")]
        hits = [(n, hit) for n in deleted for hit in search.search(Words(f"word{n}")).hits]
        stale += [(n, "is found by its words") for n, hit in hits if hit.key == str(n)]
    return missed, stale


def differences(item: dict[str, Any], card: dict[str, Any]) -> dict[str, Any]:
    """Return what a card tells otherwise than the API; of a deleted item it must not tell the words."""
    wrong = {name: (value, card.get(name)) for name, value in item.items() if card.get(name) != value}
    if item.get("deleted"):
        wrong |= {name: (None, card[name]) for name in ("by", "title", "text", "url") if name in card}
    return wrong
