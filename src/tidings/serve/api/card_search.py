"""The search joined with the shelf: what has no card any more is not shown, however far the index lags."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tidings.model.contracts import Found, Hit, SearchOrder, Shelf, ShelfEntry
from tidings.model.errors import BadInput
from tidings.model.query import Query, parse
from tidings.model.vocabulary import Vocabulary, vocabulary_of
from tidings.serve.api.filters import Card
from tidings.serve.api.search_turns import SearchTurns
from tidings.serve.backend import ReadBackend

_CURSOR = re.compile(r"(?P<at>[0-9a-f]{1,12})\.(?P<place>.+)")
ORDERS: tuple[SearchOrder, ...] = ("relevance", "newest", "score")


class CardHit(NamedTuple):
    """A hit and the card it stands for."""

    hit: Hit
    entry: ShelfEntry
    card: Card

    @property
    def id(self) -> str:
        """The card's id, which may differ from the item's key."""
        return self.hit.shelf_key.partition(":")[2]


class AskedQuery(NamedTuple):
    """A parsed query with the time that `after:7d` counts from, which stays the same on its later pages."""

    query: Query
    at_ms: int
    cursor: str | None = None
    """The index's own."""


@dataclass(frozen=True, slots=True)
class FoundCards:
    """One page of what a search found."""

    hits: list[CardHit] = field(default_factory=list)
    total: int = 0
    next_cursor: str | None = None
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    instead: str | None = None


class CardSearch:
    """Asks the index and reads the cards of what it finds."""

    def __init__(self, backend: ReadBackend) -> None:
        self._backend = backend
        self._turns = SearchTurns()
        declared = backend.pipelines.values()
        self._vocabularies = {name: vocabulary_of(declared, within=name) for name in (None, *backend.pipelines)}

    def vocabulary(self, pipeline: str | None) -> Vocabulary:
        """Return what a query may ask about, in one pipeline or across them."""
        return self._vocabularies[pipeline]

    def parse(self, text: str, pipeline: str | None, cursor: str | None = None) -> AskedQuery:
        """Parse a query, for its first page or the one behind a cursor; BadInput where either cannot be read."""
        at_ms, place = (self._backend.clock.now_ms(), None) if cursor is None else _read_cursor(cursor)
        return AskedQuery(parse(text, self._vocabularies[pipeline], now_ms=at_ms), at_ms, place)

    async def find(
        self,
        asked: AskedQuery,
        pipeline: str | None,
        *,
        limit: int,
        order: SearchOrder = "relevance",
        with_facets: bool = False,
        explain: bool = False,
    ) -> FoundCards:
        """Return a page of hits with their cards; BadInput where the index refuses the query or its cursor."""
        found: Found = await self._turns.take(
            self._backend.search.search,
            asked.query.root,
            pipeline=pipeline,
            limit=limit,
            cursor=asked.cursor,
            order=order,
            with_facets=with_facets,
            explain=explain,
        )
        hits = await self.join(found.hits)
        following = f"{asked.at_ms:x}.{found.next_cursor}" if found.next_cursor is not None else None
        return FoundCards(hits, found.total, following, found.facets, found.instead)

    async def similar(self, pipeline: str, kind: str, key: str, limit: int) -> list[CardHit]:
        """Return what has the most in common with an item."""
        hits = await self._turns.take(self._backend.search.similar, pipeline, kind, key, limit=limit)
        return await self.join(hits)

    async def suggest(self, text: str, pipeline: str | None, limit: int) -> list[str]:
        """Return how a text that is being typed may go on, by the words of the index."""
        return await self._turns.take(self._backend.search.suggest, text, pipeline=pipeline, limit=limit)

    async def join(self, hits: Sequence[Hit]) -> list[CardHit]:
        """Read the cards of hits."""
        return await self._backend.executor.read(join_cards, hits, self._backend.shelf, self._backend.pipelines)


def join_cards(hits: Sequence[Hit], shelf: Shelf, pipelines: Collection[str]) -> list[CardHit]:
    """Read the cards of hits; what was withdrawn or deleted meanwhile, or is of no pipeline here, is left out."""
    keys: dict[str, list[str]] = {}
    for hit in hits:
        if hit.pipeline in pipelines:
            keys.setdefault(hit.pipeline, []).append(hit.shelf_key)
    entries = {pipeline: shelf.get_many(pipeline, wanted) for pipeline, wanted in keys.items()}
    joined = [
        CardHit(hit, entry, msgspec.json.decode(entry.value))
        for hit in hits
        if (entry := entries.get(hit.pipeline, {}).get(hit.shelf_key)) is not None
    ]
    # A deleted item keeps its place in a thread, and so its card, but none of its words.
    return [each for each in joined if not each.card.get("deleted")]


def _read_cursor(cursor: str) -> tuple[int, str]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise BadInput("this cursor was not given out here; take next_cursor of the page before, unchanged")
    return int(match["at"], 16), match["place"]
