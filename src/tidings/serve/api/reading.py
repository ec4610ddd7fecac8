"""The reading list: cards of chosen pipelines or of a search, newest first, with one reader's marks."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tidings.model.contracts import ShelfEntry
from tidings.model.marks import MARKED_MAX, Mark, SavedSearch, ShelfPlace, is_read
from tidings.model.publication import DELIVERY
from tidings.serve.api.card_search import CardSearch
from tidings.serve.api.collections import Collections
from tidings.serve.api.filters import Position
from tidings.serve.api.full_texts import ReadableText
from tidings.serve.api.listings import ListedCard, Reader
from tidings.serve.api.readable_cards import ReadableCard, from_shelf
from tidings.serve.api.threads import front_of
from tidings.serve.backend import Backend

Show = Literal["unread", "starred", "all"]
SHOWS: tuple[Show, ...] = ("unread", "starred", "all")
SCANNED_MAX = 10_000
"""How many cards of a collection one page looks through at most."""
COUNTED_MAX = 999
"""More unread ones are not counted."""
_PAGE = 500
_FIRST_PAGE = 60
_SEARCH_PAGE = 200
_SEARCHED_MAX = 2_000
_COUNT_SECONDS = 5


class ReadingEntry(NamedTuple):
    """A card with its marks."""

    item: int
    reader: Reader
    shown: ListedCard
    is_read: bool
    starred_at: int | None

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return self.shown.position

    def card(self, root: str) -> ReadableCard:
        """Make it ready for people."""
        return from_shelf(self.reader, self.shown.entry, root, self.shown.card)


@dataclass(frozen=True, slots=True)
class ReadingView:
    """What the list is over: a query, or whole pipelines."""

    name: str
    title: str
    pipeline: str | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class ReadingPage:
    """Some entries, and where the next ones begin."""

    entries: Sequence[ReadingEntry]
    next_after: Position | None


class _Marked(NamedTuple):
    """One reader's marks of some items, and the line of one pipeline."""

    marks: Mapping[int, Mark]
    line: int

    def entry(self, reader: Reader, shown: ListedCard) -> ReadingEntry:
        item = shown.entry.item or 0
        mark = self.marks.get(item)
        starred_at = mark.starred_at if mark is not None else None
        return ReadingEntry(item, reader, shown, is_read(item, mark, self.line), starred_at)


class ReadingList:
    """Reads lists for one reader at a time."""

    def __init__(self, backend: Backend, collections: Collections, search: CardSearch) -> None:
        self._backend, self._search = backend, search
        self._marks, self._shelf = backend.marks, backend.shelf
        self._full_texts = collections.full_texts
        self.readers = [each for each in collections.readers.values() if is_readable(each)]
        self._by_collection = {(each.pipeline, each.collection.name): each for each in self.readers}
        self._counted: dict[tuple[str, str], tuple[float, int]] = {}

    def pipelines(self) -> list[str]:
        """Return the pipelines that have anything to read."""
        return list(dict.fromkeys(each.pipeline for each in self.readers))

    def views(self, searches: Sequence[SavedSearch]) -> list[ReadingView]:
        """Return everything, each pipeline, and each saved search."""
        titles = {name: each.title for name, each in self._backend.pipelines.items()}
        return [
            ReadingView("all", "Everything"),
            *(ReadingView(f"pipeline:{name}", titles[name], name) for name in self.pipelines()),
            *(ReadingView(f"search:{each.name}", each.title, each.pipeline, each.query) for each in searches),
        ]

    async def searches(self, person: str) -> list[SavedSearch]:
        """Return a reader's saved searches."""
        return await self._backend.executor.read(self._marks.searches, person)

    async def page(
        self,
        person: str,
        view: ReadingView,
        show: Show,
        limit: int,
        after: Position | None = None,
    ) -> ReadingPage:
        """Return the next entries of a view, newest first."""
        if show == "starred":
            found = [each for each in await self._starred(person) if self._is_within(each, view)]
            if view.query is not None:
                wanted = {each.item for each in await self._searched(person, view, _SEARCHED_MAX)}
                found = [each for each in found if each.item in wanted]
            found.sort(key=lambda each: each.position, reverse=True)
        elif view.query is not None:
            found = [
                each for each in await self._searched(person, view, _SEARCHED_MAX) if show == "all" or not each.is_read
            ]
        else:
            return await self._backend.executor.read(self._scan, person, view, show, limit, after)
        rest = [each for each in found if after is None or each.position < after]
        return ReadingPage(rest[:limit], rest[limit - 1].position if len(rest) > limit else None)

    async def count(self, person: str, view: ReadingView) -> int:
        """Return how many entries are unread, up to a limit; a count is used for some seconds."""
        name, now = (person, view.name), self._backend.monotonic()
        known = self._counted.get(name)
        if known is None or known[0] <= now:
            page = await self.page(person, view, "unread", COUNTED_MAX)
            known = self._counted[name] = (now + _COUNT_SECONDS, len(page.entries))
        return known[1]

    async def counts(self, person: str, views: Sequence[ReadingView]) -> dict[str, int]:
        """Return how many entries of each view are unread."""
        return {view.name: await self.count(person, view) for view in views}

    async def mark(
        self, person: str, items: Sequence[int], *, read: bool | None = None, starred: bool | None = None
    ) -> int:
        """Mark items; return how many there were."""
        self._counted.clear()
        write, marked = self._backend.executor.write, 0
        for start in range(0, len(items), MARKED_MAX):
            part = items[start : start + MARKED_MAX]
            marked += await write(self._marks.mark, person, part, read=read, starred=starred)
        return marked

    async def read_everything(self, person: str, view: ReadingView, at_ms: int | None = None) -> None:
        """Mark all of a view as read that was shown by a time; of a search, what it finds."""
        self._counted.clear()
        at_ms = at_ms if at_ms is not None else self._backend.clock.now_ms()
        if view.query is None:
            names = [view.pipeline] if view.pipeline is not None else self.pipelines()
            await self._backend.executor.write(self._marks.read_up_to, person, names, at_ms)
            return
        found = await self._searched(person, view, _SEARCHED_MAX)
        unread = [each.item for each in found if not each.is_read and each.shown.entry.written_at <= at_ms]
        await self.mark(person, unread, read=True)

    async def texts(self, entries: Sequence[ReadingEntry], *, images: bool = False) -> dict[int, ReadableText]:
        """Return the full texts there are of entries, by item."""
        items: dict[str, list[int]] = {}
        for each in entries:
            items.setdefault(each.reader.pipeline, []).append(each.item)
        found: dict[int, ReadableText] = {}
        for pipeline, wanted in items.items():
            found |= await self._full_texts.read(pipeline, wanted, images=images)
        return found

    async def items(self, person: str, items: Sequence[int]) -> list[ReadingEntry]:
        """Return the entries of items that are shown, in the order given."""
        return await self._backend.executor.read(self._of_items, person, items)

    def _is_within(self, entry: ReadingEntry, view: ReadingView) -> bool:
        return view.pipeline is None or entry.reader.pipeline == view.pipeline

    async def _starred(self, person: str) -> list[ReadingEntry]:
        items = await self._backend.executor.read(self._marks.starred, person, MARKED_MAX)
        return await self.items(person, items)

    async def _searched(self, person: str, view: ReadingView, limit: int) -> list[ReadingEntry]:
        """Return the newest that a query finds, with marks; what it finds of replies too, for it asked for them."""
        asked = self._search.parse(view.query or "", view.pipeline)
        items: list[int] = []
        while len(items) < limit:
            found = await self._search.find(asked, view.pipeline, limit=_SEARCH_PAGE, order="newest")
            items += [each.entry.item for each in found.hits if each.entry.item is not None]
            if found.next_cursor is None:
                break
            asked = self._search.parse(view.query or "", view.pipeline, found.next_cursor)
        return await self.items(person, items[:limit])

    # What follows runs in a reader thread of the store.

    def _scan(self, person: str, view: ReadingView, show: Show, limit: int, after: Position | None) -> ReadingPage:
        lines = self._marks.lines(person)
        readers = [each for each in self.readers if view.pipeline in (None, each.pipeline)]
        streams = [self._walk(person, each, lines.get(each.pipeline, 0), show, after) for each in readers]
        merged = heapq.merge(*streams, key=lambda each: each.position, reverse=True)
        entries: list[ReadingEntry] = []
        for entry in merged:
            if len(entries) == limit:
                return ReadingPage(entries, entries[-1].position)
            entries.append(entry)
        return ReadingPage(entries, None)

    def _walk(
        self, person: str, reader: Reader, line: int, show: Show, after: Position | None
    ) -> Iterator[ReadingEntry]:
        """Yield the wanted entries of a collection, newest first; only those are decoded that may be."""
        collection, is_front = reader.collection, front_of(reader.collection)
        size = _FIRST_PAGE
        looked_at = 0
        while looked_at < SCANNED_MAX:
            page = self._shelf.newest(reader.pipeline, collection.name, limit=size, after=after)
            marked = _Marked(self._marks.of(person, [each.item for each in page if each.item is not None]), line)
            for entry in page:
                known = is_read(entry.item or 0, marked.marks.get(entry.item or 0), line)
                if show == "all" or not known:
                    shown = reader.decoded(entry)
                    if (is_front is None or is_front(shown.card)) and not _is_gone(shown):
                        yield marked.entry(reader, shown)
            looked_at += len(page)
            if len(page) < size:
                return
            after, size = (page[-1].sort, page[-1].key), _PAGE

    def _of_items(self, person: str, items: Sequence[int]) -> list[ReadingEntry]:
        places: dict[int, ShelfPlace] = self._marks.places(items)
        marks, lines = self._marks.of(person, items), self._marks.lines(person)
        keys: dict[str, list[str]] = {}
        for each in places.values():
            keys.setdefault(each.pipeline, []).append(each.key)
        cards: dict[str, dict[str, ShelfEntry]] = {
            name: self._shelf.get_many(name, wanted) for name, wanted in keys.items() if name in self._backend.pipelines
        }
        found = []
        for item in dict.fromkeys(items):
            place = places.get(item)
            reader = self._by_collection.get((place.pipeline, place.collection)) if place is not None else None
            if place is None or reader is None or (entry := cards[place.pipeline].get(place.key)) is None:
                continue
            shown = reader.decoded(entry)
            if not _is_gone(shown):
                found.append(_Marked(marks, lines.get(place.pipeline, 0)).entry(reader, shown))
        return found


def is_readable(reader: Reader) -> bool:
    """Tell whether a collection is something to read: neither notices nor profiles."""
    return reader.collection.kind != DELIVERY and not reader.collection.members_query


def _is_gone(shown: ListedCard) -> bool:
    return bool(shown.card.get("deleted") or shown.card.get("dead"))
