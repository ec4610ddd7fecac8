"""Discovers items in the live API: every new id in turn, what changed, what is listed, and the threads around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from tidings.model.contracts import Kit
from tidings.model.errors import BadInput
from tidings.model.item import LOW, NORMAL, Rejected
from tidings.model.pipeline import Page, Run, Schedule
from tidings.pipelines.hacker_news.admit import finding_of
from tidings.pipelines.hacker_news.firebase import LISTINGS, Firebase, Listing, Read
from tidings.pipelines.hacker_news.item import PIPELINE

TRIES = 10
"""So many runs an id without an answer is asked again; some stay without one for good."""
AGAIN_MAX = 1_000
YOUNG = 1_000
"""An id this close to the newest may still get its item; an older one without an item never had one to show."""
KNOWN_MAX = 50_000
WANTED_MAX = 5_000


class Backfill(msgspec.Struct, omit_defaults=True):
    """A range of ids to read, as it was asked for, the next one, and where it ends: nothing is above the newest."""

    first: int
    last: int
    next: int
    end: int


class Cursor(msgspec.Struct, omit_defaults=True):
    """How far we are. Every id from `start` to `walked` has been asked for."""

    start: int
    walked: int
    again: dict[str, int] = {}
    """Ids without an answer yet, with the number of tries."""
    backfill: Backfill | None = None


@dataclass(slots=True)
class Tour:
    """One run: how far it is, what it has asked for, and which older relatives it came across."""

    api: Firebase
    cursor: Cursor
    seen: set[int] = field(default_factory=set)
    relatives: dict[int, None] = field(default_factory=dict)

    async def read(self, ids: list[int]) -> Read:
        """Ask for a page of items."""
        read = await self.api.read(ids)
        self.seen.update(ids)
        for item in read.items:
            named = (item.parent, item.poll, *(item.parts or ()), *(item.kids or ()))
            self.relatives |= {n: None for n in named if n is not None and 0 < n < self.cursor.start}
        return read

    def ask_again(self, ids: Iterable[int], tries: int) -> None:
        """Remember ids for later runs, up to a bound."""
        for number in islice(ids, AGAIN_MAX - len(self.cursor.again)):
            self.cursor.again.setdefault(str(number), tries)


@dataclass(slots=True)
class FirebaseSource:
    """Walks the ids upward, and looks at the lists and at what changed; one run reads a bounded number of items."""

    base_url: str
    schedule: Schedule
    concurrency: int = 16
    page_size: int = 200
    first_items: int = 500
    """How far behind the newest id the first run starts."""
    items_per_run: int = 2_000
    list_size: int = 100
    """How much of each list counts, from its top."""
    thread_items: int = 500
    """How many parents and kids older than our start are read in one run."""
    listings: Sequence[Listing] = LISTINGS
    name: str = f"{PIPELINE}.firebase"
    _known: dict[int, None] = field(default_factory=dict)
    """Older items read by this process; nothing breaks when it forgets."""
    _wanted: dict[int, None] = field(default_factory=dict)
    """Relatives not read for lack of time."""
    _is_open: bool = False
    """A run has begun and not ended; what it read may not have been kept."""

    def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Read what is new; or, with the options `from` and `to`, a range of ids."""
        api = Firebase(self.base_url, kit.fetcher, concurrency=self.concurrency)
        cursor = None if run.cursor is None else msgspec.convert(run.cursor, Cursor)
        if "from" in run.options or "to" in run.options:
            return self._backfill(api, run, cursor)
        return self._live(api, run, cursor)

    def progress(self, cursor: Any) -> tuple[int, int] | None:
        """Return how many ids of the range under way are read, of how many; None where no range is."""
        backfill = None if cursor is None else msgspec.convert(cursor, Cursor).backfill
        return None if backfill is None else (backfill.next - backfill.first, backfill.end - backfill.first + 1)

    async def _live(self, api: Firebase, run: Run, cursor: Cursor | None) -> AsyncIterator[Page]:
        newest = await api.newest_id()
        if self._is_open:
            self._known.clear()
        self._is_open = True
        if cursor is None or cursor.walked == 0:
            start = max(1, newest - self.first_items + 1)
            cursor = Cursor(start=start, walked=start - 1, backfill=None if cursor is None else cursor.backfill)
        tour = Tour(api, cursor)
        async for page in self._walk(tour, newest):
            yield page
        async for page in self._ask_again(tour):
            yield page
        listed = await self._listed(api)
        async for page in self._read(tour, await self._changed(tour, listed, run.mark)):
            yield page
        async for page in self._complete_threads(tour):
            yield page
        is_behind = cursor.walked < newest
        yield Page(
            (),
            cursor=msgspec.to_builtins(cursor),
            mark={"listed": listed},
            next_check_seconds=1.0 if is_behind else None,
            note=f"{newest - cursor.walked} ids to go" if is_behind else None,
        )
        self._is_open = False

    async def _walk(self, tour: Tour, newest: int) -> AsyncIterator[Page]:
        cursor = tour.cursor
        last = min(newest, cursor.walked + self.items_per_run)
        for ids in _paged(range(cursor.walked + 1, last + 1), self.page_size):
            read = await tour.read(ids)
            cursor.walked = ids[-1]
            tour.ask_again((*read.failed, *(n for n in read.missing if n > newest - YOUNG)), tries=0)
            yield _page(read, cursor)

    async def _ask_again(self, tour: Tour) -> AsyncIterator[Page]:
        """Ask for the ids that had no item yet in an earlier run."""
        cursor = tour.cursor
        due = [int(number) for number, tries in cursor.again.items() if tries > 0]
        cursor.again = {number: tries or 1 for number, tries in cursor.again.items()}
        for ids in _paged(due, self.page_size):
            read = await tour.read(ids)
            given_up = _count_tries(cursor, read)
            yield _page(read, cursor, given_up)

    async def _listed(self, api: Firebase) -> list[int]:
        listed: dict[int, None] = {}
        for listing in self.listings:
            listed |= dict.fromkeys((await api.listed(listing))[: self.list_size])
        return list(listed)

    async def _changed(self, tour: Tour, listed: list[int], mark: Any) -> list[int]:
        """Return what changed or appeared on a list since the last run; ids above the walk will come by it."""
        before = set(mark["listed"]) if mark else set()
        changed = dict.fromkeys([*await tour.api.updated(), *(n for n in listed if n not in before)])
        return [number for number in changed if number <= tour.cursor.walked and number not in tour.seen]

    async def _read(self, tour: Tour, ids: Iterable[int]) -> AsyncIterator[Page]:
        """Read items behind the walk. One that fails is asked for again; one without an item is forgotten."""
        for some in _paged(ids, self.page_size):
            read = await tour.read(some)
            tour.ask_again(read.failed, tries=1)
            yield _page(read, tour.cursor)
            self._remember(some)

    async def _complete_threads(self, tour: Tour) -> AsyncIterator[Page]:
        """Follow parents and kids to items older than our start; what one run may not read waits for the next."""
        self._wanted |= tour.relatives
        left = self.thread_items
        while left > 0 and (some := list(islice(self._unknown(), min(left, self.page_size)))):
            async for page in self._read(tour, some):
                yield page
            left -= len(some)
            self._wanted |= tour.relatives
        self._wanted = dict.fromkeys(islice(self._unknown(), WANTED_MAX))

    def _unknown(self) -> Iterator[int]:
        return (number for number in self._wanted if number not in self._known)

    def _remember(self, ids: Iterable[int]) -> None:
        """Take these as known, up to a bound; the oldest are forgotten first."""
        self._known |= dict.fromkeys(ids)
        for oldest in list(islice(self._known, max(0, len(self._known) - KNOWN_MAX))):
            del self._known[oldest]

    async def _backfill(self, api: Firebase, run: Run, cursor: Cursor | None) -> AsyncIterator[Page]:
        """Read a range of ids, page by page; the same range asked for again goes on where it stopped."""
        first, last = _range(run.options)
        newest = await api.newest_id()
        if newest < first:
            raise BadInput(f"there is nothing from {first} on: the newest item is {newest}")
        cursor = cursor or Cursor(start=0, walked=0)
        known, end = cursor.backfill, min(last, newest)
        goes_on = known is not None and (known.first, known.last) == (first, last)
        for ids in _paged(range(known.next if known is not None and goes_on else first, end + 1), self.page_size):
            read = await api.read(ids, all_or_none=True)
            cursor.backfill = Backfill(first, last, ids[-1] + 1, end)
            yield _page(read, cursor, priority=LOW, mark=run.mark)
        cursor.backfill = None
        yield Page((), cursor=msgspec.to_builtins(cursor), mark=run.mark, note=f"read from {first} to {end}")


def _page(
    read: Read,
    cursor: Cursor,
    given_up: Sequence[Rejected] = (),
    *,
    priority: int = NORMAL,
    mark: Any = None,
) -> Page:
    return Page(
        tuple(finding_of(given, "FIREBASE", priority) for given in read.items),
        cursor=msgspec.to_builtins(cursor),
        mark=mark,
        rejected=(*read.rejected, *given_up),
    )


def _count_tries(cursor: Cursor, read: Read) -> list[Rejected]:
    """Count a try for the ids still without an item, forget the others, and name those we give up."""
    given_up = []
    for number in (*read.missing, *read.failed):
        cursor.again[str(number)] += 1
        if cursor.again[str(number)] > TRIES:
            del cursor.again[str(number)]
            if number in read.failed:
                given_up.append(Rejected(number, f"item {number}: no answer in {TRIES} runs"))
    for answered in (*(item.id for item in read.items), *(rejected.line for rejected in read.rejected)):
        cursor.again.pop(str(answered), None)
    return given_up


def _range(options: Any) -> tuple[int, int]:
    first, last = options.get("from"), options.get("to")
    if not isinstance(first, int) or not isinstance(last, int) or not 1 <= first <= last:
        raise BadInput(f"a backfill needs two ids, from 1 up and in order, not {first!r} and {last!r}")
    return first, last


def _paged(ids: Iterable[int], size: int) -> Iterator[list[int]]:
    rest = iter(ids)
    while some := list(islice(rest, size)):
        yield some
