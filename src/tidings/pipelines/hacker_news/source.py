"""Discovers items in the live API: every new id in turn, what changed, what is listed, and the threads around it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from tidings.discover.ranged import UnreadId
from tidings.model.contracts import Kit
from tidings.model.pipeline import Page, Ranking, Run, Schedule
from tidings.pipelines.hacker_news.backfill import backfill, read_unread
from tidings.pipelines.hacker_news.body import PIPELINE
from tidings.pipelines.hacker_news.client import ITEM_SECONDS, LIST_NAMES, LISTINGS, Firebase, Listing
from tidings.pipelines.hacker_news.stream import SILENCE_SECONDS, HeardNews, listening
from tidings.pipelines.hacker_news.tour import Tour, WalkCursor, paged, raise_slow_down
from tidings.pipelines.hacker_news.user_reader import UserReader
from tidings.pipelines.hacker_news.users import COLLECTION

NULL_TRIES = 10
"""So many runs an id that answered `null` is asked again; some stay without an item for good."""
UNREAD_PER_RUN = 500
"""How many unread ids one live run asks for again."""
FRESH_MS = 20_000
FOLLOWED_ITEM_SECONDS = 4.0
KNOWN_MAX = 50_000
WANTED_MAX = 5_000


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
    rereads_per_run: int = 2_000
    """How many items are read again in one run."""
    streams: bool = True
    """Whether the API's streams are listened to between runs."""
    silence_seconds: float = SILENCE_SECONDS
    """How long a stream may say nothing before it is opened again."""
    listings: Sequence[Listing] = LISTINGS
    item_seconds: float = ITEM_SECONDS
    """How long one item may take, with all its tries."""
    name: str = f"{PIPELINE}.firebase"
    grants: str = COLLECTION
    _known: dict[int, None] = field(default_factory=dict)
    """Older items read by this process; nothing breaks when it forgets."""
    _wanted: dict[int, None] = field(default_factory=dict)
    """Relatives not read for lack of time."""
    _users: UserReader = field(default_factory=UserReader)
    _news: HeardNews = field(default_factory=HeardNews)
    _fresh: dict[int, int] = field(default_factory=dict)
    """When the last ids of the walk were read: `updates` names new items too, which are read again a little later."""
    _is_open: bool = False
    """A run has begun and not ended; what it read may not have been kept."""

    def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Read what is new; with the options `from` and `to`, a range of ids; with `unread`, what could not be read."""
        api = Firebase(self.base_url, kit.fetcher, concurrency=self.concurrency, item_seconds=self.item_seconds)
        cursor = None if run.cursor is None else msgspec.convert(run.cursor, WalkCursor)
        if "from" in run.options or "to" in run.options:
            return backfill(api, run, cursor, self.page_size)
        if run.options.get("unread"):
            return read_unread(api, run, cursor, self.page_size)
        if "wishes" in run.options.get("signal", {}):
            return self._users.pages(api, run)
        if "signal" in run.options:
            return self._follow(run, kit, cursor)
        return self._live(api, run, cursor)

    def progress(self, cursor: Any) -> tuple[int, int] | None:
        """Return how many ids of the range under way are read, of how many; None where no range is."""
        backfill = None if cursor is None else msgspec.convert(cursor, WalkCursor).backfill
        return None if backfill is None else (backfill.next - backfill.first, backfill.end - backfill.first + 1)

    def unread(self, cursor: Any) -> list[UnreadId]:
        """List the ids that could not be read, lowest first."""
        entries = {} if cursor is None else msgspec.convert(cursor, WalkCursor).unread
        return sorted(
            UnreadId(int(number), entry.tries, entry.reason, None if entry.is_given_up else entry.due_ms)
            for number, entry in entries.items()
        )

    async def signals(self, kit: Kit) -> AsyncIterator[Mapping[str, Any]]:
        """Yield what the API's streams tell; without streams nothing ever comes."""
        if not self.streams:
            await asyncio.Event().wait()
        base_url = self.base_url.rstrip("/")
        async with listening(kit.fetcher, base_url, self._news, silence_seconds=self.silence_seconds):
            while True:
                await self._news.wait()
                yield self._news.drain()

    async def _follow(self, run: Run, kit: Kit, cursor: WalkCursor | None) -> AsyncIterator[Page]:
        """Read what a signal names: the ids up to the newest, what changed, and ids that had no item a moment ago."""
        signal = run.options["signal"]
        if cursor is None or cursor.walked == 0:
            return
        # An id that hangs must not hold up the others for long; it is asked for again by a later run.
        seconds = min(self.item_seconds, FOLLOWED_ITEM_SECONDS)
        api = Firebase(self.base_url, kit.fetcher, concurrency=self.concurrency, item_seconds=seconds)
        tour = Tour(api, cursor, run, max(cursor.walked, signal["newest"]))
        was_open, self._is_open = self._is_open, True
        async for page in self._walk(tour):
            yield page
        async for page in self._read_soon(tour, signal["again"]):
            yield page
        if signal["window"]:
            tour.rereads.note_updates(signal["window"])
        async for page in self._read(tour, self._passed(tour, signal["changed"])):
            yield page
        self._wanted |= tour.relatives
        yield Page((), cursor=msgspec.to_builtins(cursor))
        self._is_open = was_open

    async def _read_soon(self, tour: Tour, again: Sequence[int]) -> AsyncIterator[Page]:
        """Ask once more for ids that had no item a moment ago."""
        for ids in paged(again, self.page_size):
            read = await tour.api.read(ids)
            self._news.ask_again(read.missing, time.monotonic())
            self._news.forget([*(item.id for item in read.items), *read.failures])
            yield tour.page(read)
            raise_slow_down(read)

    async def _live(self, api: Firebase, run: Run, cursor: WalkCursor | None) -> AsyncIterator[Page]:
        newest = await api.newest_id()
        if self._is_open:
            self._known.clear()
        self._is_open = True
        cursor = cursor or WalkCursor(start=0, walked=0)
        if cursor.walked == 0:
            cursor.start = max(1, newest - self.first_items + 1)
            cursor.walked = cursor.start - 1
        tour = Tour(api, cursor, run, newest)
        async for page in self._walk(tour):
            yield page
        async for page in self._ask_again(tour):
            yield page
        rankings = await self._rankings(api)
        yield Page((), rankings=rankings)
        listed = list(dict.fromkeys(int(number) for ranking in rankings for number in ranking.ids))
        async for page in self._read(tour, await self._changed(tour, listed, run.mark)):
            yield page
        async for page in self._complete_threads(tour):
            yield page
        async for page in self._read_again(tour):
            yield page
        # Last, because ids that failed before may take their time to fail again.
        async for page in tour.retry(tour.unread.due(UNREAD_PER_RUN), self.page_size):
            yield page
        yield self._last_page(tour, listed)
        self._is_open = False

    def _last_page(self, tour: Tour, listed: list[int]) -> Page:
        notes = []
        is_behind = tour.cursor.walked < tour.newest
        if is_behind:
            notes.append(f"{tour.newest - tour.cursor.walked} ids to go")
        if given_up := len(tour.unread.given_up()):
            count = "1 id is" if given_up == 1 else f"{given_up} ids are"
            notes.append(f"{count} given up; `tidings discover {PIPELINE} --unread` lists and asks again")
        if tour.reread:
            waiting = tour.rereads.waiting()
            notes.append(f"{tour.reread} items read again" + (f", {waiting} to go" if waiting else ""))
        return Page(
            (),
            cursor=msgspec.to_builtins(tour.cursor),
            mark={"listed": listed},
            next_check_seconds=1.0 if is_behind and tour.unread.has_room(self.page_size) else None,
            note="; ".join(notes) or None,
            outdated=self._users.outdated(tour.profiles),
        )

    async def _walk(self, tour: Tour) -> AsyncIterator[Page]:
        cursor = tour.cursor
        last = min(tour.newest, cursor.walked + self.items_per_run)
        for ids in paged(range(cursor.walked + 1, last + 1), self.page_size):
            if not tour.unread.has_room(len(ids)):
                return
            read, walked = await tour.read_new(ids)
            tour.rereads.note_walked(walked)
            cursor.walked = walked
            self._fresh = {n: at for n, at in self._fresh.items() if tour.run.now_ms - at < FRESH_MS}
            self._fresh |= {item.id: tour.run.now_ms for item in read.items}
            if self._news.is_followed:
                self._news.ask_again(read.missing, time.monotonic())
            tour.ask_again(read.missing, tries=0)
            yield tour.page(read)
            raise_slow_down(read)

    async def _ask_again(self, tour: Tour) -> AsyncIterator[Page]:
        """Ask for the ids that answered `null` in an earlier run."""
        again = tour.cursor.again
        due = [int(number) for number, tries in again.items() if tries > 0]
        again |= {number: tries or 1 for number, tries in again.items()}
        for ids in paged(due, self.page_size):
            read = await tour.api.read(ids)
            for number in map(str, read.missing):
                again[number] += 1
                if again[number] > NULL_TRIES:
                    del again[number]
            yield tour.page(read)
            raise_slow_down(read)

    async def _rankings(self, api: Firebase) -> tuple[Ranking, ...]:
        """Read the lists, each from its top as far as it counts."""
        orders = [(await api.listed(listing))[: self.list_size] for listing in self.listings]
        return tuple(
            Ranking(LIST_NAMES[listing], tuple(map(str, dict.fromkeys(order))))
            for listing, order in zip(self.listings, orders, strict=True)
        )

    async def _changed(self, tour: Tour, listed: list[int], mark: Any) -> list[int]:
        """Return what changed or appeared on a list since the last run; ids above the walk will come by it."""
        before = set(mark["listed"]) if mark else set()
        updated, tour.profiles = await tour.api.updated()
        tour.rereads.note_updates(updated)
        return self._passed(tour, dict.fromkeys([*updated, *(n for n in listed if n not in before)]))

    def _passed(self, tour: Tour, ids: Iterable[int]) -> list[int]:
        """Return those of the ids that are worth reading now: behind the walk, and not read a moment ago."""
        passed = (number for number in ids if number <= tour.cursor.walked and number not in tour.seen)
        ready = [number for number in passed if not tour.unread.is_early(number)]
        if not self._news.is_followed:
            return ready
        early = tour.run.now_ms - FRESH_MS
        fresh = [number for number in ready if self._fresh.get(number, 0) > early]
        self._news.postpone(fresh, time.monotonic() + FRESH_MS / 1000)
        return [number for number in ready if self._fresh.get(number, 0) <= early]

    async def _read(self, tour: Tour, ids: Iterable[int]) -> AsyncIterator[Page]:
        """Read items behind the walk. One that fails is asked for again; one without an item is forgotten."""
        for some in paged(ids, self.page_size):
            if not tour.unread.has_room(len(some)):
                return
            read = await tour.api.read(some)
            yield tour.page(read)
            raise_slow_down(read)
            self._remember(some)

    async def _read_again(self, tour: Tour) -> AsyncIterator[Page]:
        """Read known items once more where a change may have passed unseen; what one run may not read waits."""
        while (left := self.rereads_per_run - tour.reread) > 0:
            stretch = tour.rereads.next_stretch(min(left, self.page_size))
            if stretch is None or not tour.unread.has_room(len(stretch.ids)):
                return
            ids = [n for n in stretch.ids if n not in tour.seen and not tour.unread.is_early(n)]
            read = await tour.read(ids)
            if read.slow_down is None:
                tour.rereads.close(stretch, read.items)
            tour.reread += len(ids)
            yield tour.page(read)
            raise_slow_down(read)

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
