"""Reading collections from the shelf: small ones are held decoded in memory, large ones are read page by page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.model.contracts import Executor, Shelf, ShelfEntry
from tidings.model.publication import Collection
from tidings.serve.api.facet_counts import SCANNED_MAX, Counted, FacetCounts
from tidings.serve.api.filters import Card, Position, Predicate, count_facets
from tidings.serve.http.hot_answers import Freshness

HELD_MAX = 2_000
_PAGE = 500
_WARNINGS_MAX = 50


@dataclass(frozen=True, slots=True)
class ListedCard:
    """A card as read: its entry on the shelf and its values."""

    entry: ShelfEntry
    card: Card

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return self.entry.sort, self.entry.key


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a collection."""

    shown: Sequence[ListedCard]
    total: int | None
    """How many there are in all; None where telling would mean reading everything."""
    counts: dict[str, dict[str, int]]
    updated_at: int | None
    warnings: list[str]
    next_after: Position | None


@dataclass(frozen=True, slots=True)
class HeldCards:
    """A whole collection, decoded, at one version of the shelf."""

    version: int
    shown: list[ListedCard]
    warnings: list[str]
    counts: dict[str, dict[str, int]]
    updated_at: int | None
    by_key: dict[str, ListedCard] = field(default_factory=dict)


class Reader:
    """Reads one collection. Its store calls run off the event loop."""

    def __init__(
        self,
        executor: Executor,
        shelf: Shelf,
        freshness: Freshness,
        pipeline: str,
        collection: Collection,
        on_counted: Callable[[], None] = lambda: None,
    ) -> None:
        self.pipeline = pipeline
        self.collection = collection
        self._executor, self._shelf, self._freshness = executor, shelf, freshness
        self._held: HeldCards | None = None
        self._large_at: int | None = None
        self._holding = asyncio.Lock()
        self._counts = FacetCounts(executor, shelf, pipeline, collection, on_counted)

    def key_of(self, card_id: str) -> str:
        """Return the shelf's key of a card."""
        return f"{self.collection.singular}:{card_id}"

    def id_of(self, key: str) -> str:
        """Return the id behind a shelf key."""
        return key.partition(":")[2]

    async def one(self, card_id: str) -> ShelfEntry | None:
        """Return one card."""
        return await self._executor.read(self._shelf.get, self.pipeline, self.key_of(card_id))

    async def recent(self, card_id: str) -> ShelfEntry | None:
        """Return one card as of the version that was last checked: from memory, where its collection is held."""
        held = self._held
        if held is not None and held.version == await self._freshness.current():
            known = held.by_key.get(self.key_of(card_id))
            if known is not None:
                return known.entry
        return await self.one(card_id)

    async def many(self, card_ids: Sequence[str]) -> dict[str, ShelfEntry]:
        """Return the cards that exist, by id."""
        keys = [self.key_of(card_id) for card_id in card_ids]
        entries = await self._executor.read(self._get_many, keys)
        return {self.id_of(key): entry for key, entry in entries.items()}

    async def page(self, wanted: Predicate | None, limit: int, after: Position | None) -> ListPage:
        """Return the next cards that are wanted, newest first, with what is to be said about the whole."""
        held = await self.held()
        if held is not None:
            return _page_of_held(held, wanted, limit, after)
        counted = await self._counts.now()
        return await self._executor.read(self._page_of_large, wanted, limit, after, counted)

    async def held(self) -> HeldCards | None:
        """Return the whole collection, or None when it is too large for that."""
        version = await self._freshness.current()
        if self._held is not None and self._held.version == version:
            return self._held
        if self._large_at == version:
            return None
        async with self._holding:
            if self._held is None or self._held.version != version:
                held = await self._executor.read(self._hold, version, self._held)
                self._held, self._large_at = held, (version if held is None else None)
            return self._held

    def decoded(self, entry: ShelfEntry) -> ListedCard:
        """Read the values of a card."""
        return _decoded(entry, {})

    # What follows runs in a reader thread of the store.

    def _get_many(self, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        entries: dict[str, ShelfEntry] = {}
        for start in range(0, len(keys), _PAGE):
            entries |= self._shelf.get_many(self.pipeline, keys[start : start + _PAGE])
        return entries

    def _hold(self, version: int, before: HeldCards | None) -> HeldCards | None:
        warnings: list[str] = []
        if self.collection.id_index:
            entries = self._listed(warnings)
        elif self._shelf.count(self.pipeline, self.collection.name) > HELD_MAX:
            return None
        else:
            entries = self._all()
            there = {entry.key for entry in entries}
            listed = self._shelf.listed(self.pipeline, self.collection.name)
            self._name_missing([self.id_of(key) for key in listed if key not in there], warnings)
        decoded = before.by_key if before is not None else {}
        shown = [_decoded(entry, decoded) for entry in entries]
        counts = count_facets(self.collection, (each.card for each in shown))
        updated_at = max((entry.written_at for entry in entries), default=None)
        return HeldCards(version, shown, warnings, counts, updated_at, {each.entry.key: each for each in shown})

    def _listed(self, warnings: list[str]) -> list[ShelfEntry]:
        """Read the id list, then the cards; a card that is missing is skipped and named."""
        index = self._shelf.get(self.pipeline, f"index:{self.collection.name}")
        ids = [str(each) for each in msgspec.json.decode(index.value)["ids"]] if index is not None else []
        entries = self._get_many([self.key_of(each) for each in ids])
        self._name_missing([each for each in ids if self.key_of(each) not in entries], warnings)
        return [entries[key] for each in ids if (key := self.key_of(each)) in entries]

    def _name_missing(self, ids: Sequence[str], warnings: list[str]) -> None:
        warnings += [
            f"{self.collection.singular} {each} is listed and not on the shelf" for each in ids[:_WARNINGS_MAX]
        ]
        if len(ids) > _WARNINGS_MAX:
            warnings.append(f"{len(ids) - _WARNINGS_MAX} more are missing")

    def _all(self) -> list[ShelfEntry]:
        entries: list[ShelfEntry] = []
        after: Position | None = None
        while len(entries) < HELD_MAX:
            page = self._shelf.newest(self.pipeline, self.collection.name, limit=_PAGE, after=after)
            entries += page
            if len(page) < _PAGE:
                break
            after = page[-1].sort, page[-1].key
        return entries

    def _page_of_large(
        self, wanted: Predicate | None, limit: int, after: Position | None, counted: Counted
    ) -> ListPage:
        if wanted is None:
            entries = self._shelf.newest(self.pipeline, self.collection.name, limit=limit + 1, after=after)
            shown = [_decoded(entry, {}) for entry in entries]
            total: int | None = self._shelf.count(self.pipeline, self.collection.name)
            following = shown[limit - 1].position if len(shown) > limit else None
            return self._listing(shown[:limit], total, counted, [], following)
        shown, following, looked_at = self._scan(wanted, limit, after)
        warnings = []
        if following is not None and len(shown) < limit:
            warnings.append(f"looked through {looked_at:,} cards; next_cursor goes on from there")
        return self._listing(shown, None, counted, warnings, following)

    def _listing(
        self,
        shown: list[ListedCard],
        total: int | None,
        counted: Counted,
        warnings: list[str],
        following: Position | None,
    ) -> ListPage:
        updated_at = max((each.entry.written_at for each in shown), default=None)
        return ListPage(shown, total, counted.counts, updated_at, counted.warnings + warnings, following)

    def _scan(
        self, wanted: Predicate, limit: int, after: Position | None
    ) -> tuple[list[ListedCard], Position | None, int]:
        found: list[ListedCard] = []
        looked_at = 0
        while looked_at < SCANNED_MAX:
            page = self._shelf.newest(self.pipeline, self.collection.name, limit=_PAGE, after=after)
            for entry in page:
                shown = _decoded(entry, {})
                if wanted(shown.card):
                    if len(found) == limit:
                        return found, found[-1].position, looked_at
                    found.append(shown)
                looked_at += 1
            if len(page) < _PAGE:
                return found, None, looked_at
            after = page[-1].sort, page[-1].key
        return found, after, looked_at


def _decoded(entry: ShelfEntry, known: dict[str, ListedCard]) -> ListedCard:
    before = known.get(entry.key)
    if before is not None and before.entry.value == entry.value:
        return ListedCard(entry, before.card)
    return ListedCard(entry, msgspec.json.decode(entry.value))


def _page_of_held(held: HeldCards, wanted: Predicate | None, limit: int, after: Position | None) -> ListPage:
    chosen = held.shown if wanted is None else [each for each in held.shown if wanted(each.card)]
    start = _start_behind(chosen, after)
    page = chosen[start : start + limit]
    following = page[-1].position if start + limit < len(chosen) else None
    return ListPage(page, len(chosen), held.counts, held.updated_at, held.warnings, following)


def _start_behind(shown: Sequence[ListedCard], after: Position | None) -> int:
    if after is None:
        return 0
    for index, each in enumerate(shown):
        if each.position == after:
            return index + 1
    # The card itself has moved or gone: go on with what is older.
    for index, each in enumerate(shown):
        if each.entry.sort < after[0]:
            return index
    return len(shown)


def encode_listing(collection: Collection, listing: ListPage, cursor: str | None, updated_at: str | None) -> bytes:
    """Join the encoded cards, as they stand on the shelf, into the collection's one shape."""
    rest: dict[str, Any] = {
        "total": listing.total,
        **listing.counts,
        "updated_at": updated_at,
        "warnings": listing.warnings,
        "next_cursor": cursor,
    }
    cards = b",".join([each.entry.value for each in listing.shown])
    return b'{"%s":[%s],%s' % (collection.name.encode(), cards, msgspec.json.encode(rest)[1:])
