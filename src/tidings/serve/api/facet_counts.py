"""How many cards have each value of a facet, in collections too large to be held in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from tidings.model.contracts import Executor, Shelf
from tidings.model.publication import Collection
from tidings.serve.api.filters import Card, Position, count_facets

SCANNED_MAX = 20_000
"""How many cards one request looks through at most, where a collection is too large to be held."""
_PAGE = 500
_COUNTS_SECONDS = 30
_REST = 100
"""Counting everything is repeated after so many times what it took: one hundredth of a processor at most."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts by facet and value, and what is to be said about them."""

    until: float
    counts: dict[str, dict[str, int]]
    warnings: list[str] = field(default_factory=list)


class FacetCounts:
    """Counts a large collection: the newest cards at once, all of them beside the requests."""

    def __init__(
        self,
        executor: Executor,
        shelf: Shelf,
        pipeline: str,
        collection: Collection,
        on_counted: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._executor, self._shelf, self._monotonic = executor, shelf, monotonic
        self._on_counted = on_counted
        self._pipeline, self._collection = pipeline, collection
        self._counted: Counted | None = None
        self._counting: asyncio.Task[None] | None = None

    async def now(self) -> Counted:
        """Return the counts there are; where they are old, or of the newest cards only, count in the background."""
        if not self._collection.facets:
            return Counted(0, {})
        counted = self._counted
        if counted is None:
            counted = self._counted = await self._executor.read(self._count_newest)
        if self._monotonic() >= counted.until and (self._counting is None or self._counting.done()):
            self._counting = asyncio.create_task(self._recount())
        return counted

    async def _recount(self) -> None:
        started = self._monotonic()
        counts = await self._executor.read(self._count_all)
        now, before = self._monotonic(), self._counted
        self._counted = Counted(now + max(_COUNTS_SECONDS, _REST * (now - started)), counts)
        if before is None or (before.counts, before.warnings) != (counts, []):
            self._on_counted()

    # What follows runs in a reader thread of the store.

    def _count_newest(self) -> Counted:
        counts = count_facets(self._collection, self._cards(SCANNED_MAX // _PAGE))
        if self._shelf.count(self._pipeline, self._collection.name) <= SCANNED_MAX:
            return Counted(self._monotonic() + _COUNTS_SECONDS, counts)
        return Counted(0, counts, [f"counts cover the newest {SCANNED_MAX:,} cards; all are being counted"])

    def _count_all(self) -> dict[str, dict[str, int]]:
        return count_facets(self._collection, self._cards(None))

    def _cards(self, pages_max: int | None) -> Iterator[Card]:
        """Yield cards page by page, newest first: all at once they took tens of megabytes."""
        after: Position | None = None
        pages = 0
        while pages_max is None or pages < pages_max:
            page = self._shelf.newest(self._pipeline, self._collection.name, limit=_PAGE, after=after)
            for entry in page:
                yield msgspec.json.decode(entry.value)
            if len(page) < _PAGE:
                return
            after = page[-1].sort, page[-1].key
            pages += 1
