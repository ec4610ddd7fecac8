"""A stream of changes in memory, as the store gives it: the latest state of every key, in commit order."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from tests.support.clock import ManualClock

from tidings.follow.mirrors.budget import WriteBudget
from tidings.follow.mirrors.mirror import Mirror, MirrorPace
from tidings.follow.mirrors.names import MirroredCollection, MirroredPipeline
from tidings.follow.mirrors.target import Target
from tidings.model.changes import Change
from tidings.model.clock import day_of

PIPELINE = "bitcoin_news"
ARTICLES = MirroredCollection("articles", "article", has_ids=True, index_name="BTC_ID_INDEX")
NOTES = MirroredCollection("notes", "note", has_ids=False, index_name="index:notes")
PLAN = MirroredPipeline(PIPELINE, {"articles": ARTICLES, "notes": NOTES})
NOW_MS = 1_790_035_200_000
"""Midnight, UTC."""


class Stream:
    """What a pipeline's shelf has gone through."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._version = 0
        self._entries: dict[str, Change] = {}
        self._ids: dict[str, int] = {}

    def put(self, card_id: str, text: str = "", *, sort: int | None = None, collection: str = "articles") -> None:
        sort = self._clock.now_ms() if sort is None else sort
        singular = collection.removesuffix("s")
        self._write(f"{singular}:{card_id}", collection, sort, msgspec.json.encode({"id": card_id, "title": text}))
        if collection == "articles":
            self._ids.setdefault(card_id, sort)
            self._write_ids()

    def withdraw(self, card_id: str, *, collection: str = "articles") -> None:
        self._write(f"{collection.removesuffix('s')}:{card_id}", collection, 0, None)
        if self._ids.pop(card_id, None) is not None:
            self._write_ids()

    def forget_withdrawn(self) -> None:
        """Drop the rows without a value, as retention does."""
        self._entries = {key: change for key, change in self._entries.items() if change.value is not None}

    def after(self, position: str | None, limit: int = 1_000) -> tuple[list[Change], str]:
        since = int(position or 0)
        found = sorted(each for each in self._entries.values() if each.version > since)[:limit]
        return found, str(found[-1].version) if found else str(since)

    @property
    def cards(self) -> dict[str, bytes]:
        """What a mirror of everything holds, by key."""
        held = {each.key: each.value for each in self._entries.values() if each.collection and each.value is not None}
        return {key: value for key, value in held.items() if value is not None}

    @property
    def ids(self) -> list[str]:
        return sorted(self._ids, key=lambda each: (self._ids[each], each), reverse=True)

    def _write_ids(self) -> None:
        value = msgspec.json.encode({"ids": self.ids, "sorts": [self._ids[each] for each in self.ids]})
        self._write("index:articles", "", 0, value)

    def _write(self, key: str, collection: str, sort: int, value: bytes | None) -> None:
        self._version += 1
        at = self._clock.now_ms()
        self._entries[key] = Change(self._version, PIPELINE, key, collection, sort, value, 1, 1, at)


class DayCounter:
    """Counts as the store's ledger does: by the clock's day, what is over the limit is refused."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.spent: dict[tuple[str, str], int] = {}

    async def reserve(self, name: str, amount: int, limit: int) -> bool:
        key = name, day_of(self._clock.now_ms())
        fits = self.spent.get(key, 0) + amount <= limit
        self.spent[key] = self.spent.get(key, 0) + amount * fits
        return fits

    async def settle(self, name: str, reserved: int, actual: int) -> None:
        self.spent[name, day_of(self._clock.now_ms())] += actual - reserved

    async def count(self, name: str, amount: int) -> None:
        key = name, day_of(self._clock.now_ms())
        self.spent[key] = self.spent.get(key, 0) + amount

    def today(self, kind: str = "mirror_writes") -> int:
        day = day_of(self._clock.now_ms())
        return sum(amount for (name, when), amount in self.spent.items() if when == day and name.startswith(kind))


def a_mirror(
    target: Target,
    clock: ManualClock,
    *,
    counter: DayCounter | None = None,
    pace: MirrorPace | None = None,
    limit: int = 0,
    plans: Sequence[MirroredPipeline] = (PLAN,),
) -> Mirror:
    counter = counter or DayCounter(clock)
    budget = WriteBudget(counter, clock, mirror="edge", pipeline=PIPELINE, limit=limit)
    return Mirror("edge", target, plans, budget=budget, clock=clock, pace=pace or MirrorPace(300, 600, 2_000))


async def follow_all(mirror: Mirror, stream: Stream, *, limit: int = 1_000) -> None:
    """Bring a mirror to the end of a stream, as the loop that drives followers does."""
    while True:
        changes, position = stream.after(await mirror.position(PIPELINE), limit)
        if not changes:
            return
        await mirror.follow(PIPELINE, changes, position)
