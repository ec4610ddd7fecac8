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
from tidings.model.errors import BadInput
from tidings.model.item import LOW, NORMAL, Rejected
from tidings.model.pipeline import Page, Ranking, Run, Schedule
from tidings.pipelines.hacker_news.body import PIPELINE
from tidings.pipelines.hacker_news.client import ITEM_SECONDS, LIST_NAMES, LISTINGS, Firebase, ItemsRead, Listing
from tidings.pipelines.hacker_news.rereads import RereadPlan, Rereads
from tidings.pipelines.hacker_news.stream import SILENCE_SECONDS, HeardNews, listening
from tidings.pipelines.hacker_news.unread import Unread, UnreadIds
from tidings.pipelines.hacker_news.upload import finding_of
from tidings.pipelines.hacker_news.user_reader import UserReader
from tidings.pipelines.hacker_news.users import COLLECTION

NULL_TRIES = 10
"""So many runs an id that answered `null` is asked again; some stay without an item for good."""
AGAIN_MAX = 1_000
UNREAD_PER_RUN = 500
"""How many unread ids one live run asks for again."""
CONTROLS = 3
"""When no id of a page is answered, so many that were answered before tell whether the whole API is in trouble."""
NAMED_MAX = 20
"""How many missing ids a report names; `--unread` lists all."""
FRESH_MS = 20_000
FOLLOWED_ITEM_SECONDS = 4.0
KNOWN_MAX = 50_000
WANTED_MAX = 5_000


class Backfill(msgspec.Struct, omit_defaults=True):
    """A range of ids to read, as it was asked for, the next one, and where it ends: nothing is above the newest."""

    first: int
    last: int
    next: int
    end: int


class WalkCursor(msgspec.Struct, omit_defaults=True):
    """How far we are. Every id from `start` to `walked` has been asked for."""

    start: int
    walked: int
    again: dict[str, int] = {}
    """Ids that answered `null`, with the number of runs that asked."""
    unread: dict[str, Unread] = {}
    """Ids that could not be read."""
    backfill: Backfill | None = None
    rereads: RereadPlan = msgspec.field(default_factory=RereadPlan)


@dataclass(slots=True)
class Tour:
    """One run: how far it is, what it has asked for, and which older relatives it came across."""

    api: Firebase
    cursor: WalkCursor
    run: Run
    newest: int
    priority: int = NORMAL
    seen: set[int] = field(default_factory=set)
    relatives: dict[int, None] = field(default_factory=dict)
    profiles: list[str] = field(default_factory=list)
    """The users that `updates` named."""
    reread: int = 0
    """How many items this run has read again."""

    @property
    def unread(self) -> UnreadIds:
        """The ids that could not be read, for this run's time."""
        return UnreadIds(self.cursor.unread, self.run.now_ms)

    @property
    def rereads(self) -> Rereads:
        """What is to be read again, for this run's time."""
        return Rereads(self.cursor.rereads, self.cursor.start, self.cursor.walked, self.run.now_ms)

    async def read_new(self, ids: list[int]) -> tuple[ItemsRead, int]:
        """Ask for ids in order that were never asked for; return the last one behind which nothing is left to ask.

        Where none of them is answered, older ids tell whether it is them or the whole API. If it is the API, the error
        is raised and nothing is noted: the same ids are read again when it has recovered.
        """
        read = await self.read(ids)
        return read, min(read.unasked) - 1 if read.unasked else ids[-1]

    async def read(self, ids: Sequence[int]) -> ItemsRead:
        """Ask for ids; raise where it is not them but the whole API that does not answer."""
        read = await self.api.read(ids)
        if read.failures and not read.has_answers and read.slow_down is None and not await self._is_sound(min(ids)):
            raise read.failures[min(read.failures)]
        return read

    def page(self, read: ItemsRead, mark: Any = None) -> Page:
        """Note what became of each id, then make a page of it; the notes are kept together with the findings."""
        unread, rejected = self.unread, []
        self.seen.update(item.id for item in read.items)
        self.seen.update((*read.missing, *read.failures))
        for item in read.items:
            self.cursor.again.pop(str(item.id), None)
            named = (item.parent, item.poll, *(item.parts or ()), *(item.kids or ()))
            older = (n for n in named if n is not None and 0 < n < self.cursor.start)
            self.relatives |= {n: None for n in older if str(n) not in self.cursor.unread}
        unread.forget((*(item.id for item in read.items), *read.missing))
        for number, error in sorted(read.failures.items()):
            self.cursor.again.pop(str(number), None)
            if isinstance(error, BadInput) and str(number) not in self.cursor.unread:
                rejected.append(Rejected(number, f"item {number}: {error}"))
            rejected += unread.count_try(number, str(error))
        return Page(
            tuple(finding_of(given, "FIREBASE", self.priority) for given in read.items),
            cursor=msgspec.to_builtins(self.cursor),
            mark=mark,
            rejected=tuple(rejected),
        )

    def ask_again(self, missing: Iterable[int], tries: int) -> None:
        """Remember ids without an item for later runs, up to a bound.

        Old ones too: after hours away the walk comes by them for the first time, and one `null` may be a slip.
        """
        for number in islice(missing, AGAIN_MAX - len(self.cursor.again)):
            self.cursor.again.setdefault(str(number), tries)

    async def _is_sound(self, below: int) -> bool:
        """Ask for ids that were not in trouble before; one answer is enough."""
        older = (number for number in range(below - 1, 0, -1) if str(number) not in self.cursor.unread)
        for number in islice(older, CONTROLS):
            if await self.api.is_answering(number):
                return True
        return False


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
            return self._backfill(api, run, cursor)
        if run.options.get("unread"):
            return self._read_unread(api, run, cursor)
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
        for ids in _paged(again, self.page_size):
            read = await tour.api.read(ids)
            self._news.ask_again(read.missing, time.monotonic())
            self._news.forget([*(item.id for item in read.items), *read.failures])
            yield tour.page(read)
            _raise_slow_down(read)

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
        async for page in self._retry(tour, tour.unread.due(UNREAD_PER_RUN)):
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
        for ids in _paged(range(cursor.walked + 1, last + 1), self.page_size):
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
            _raise_slow_down(read)

    async def _ask_again(self, tour: Tour) -> AsyncIterator[Page]:
        """Ask for the ids that answered `null` in an earlier run."""
        again = tour.cursor.again
        due = [int(number) for number, tries in again.items() if tries > 0]
        again |= {number: tries or 1 for number, tries in again.items()}
        for ids in _paged(due, self.page_size):
            read = await tour.api.read(ids)
            for number in map(str, read.missing):
                again[number] += 1
                if again[number] > NULL_TRIES:
                    del again[number]
            yield tour.page(read)
            _raise_slow_down(read)

    async def _retry(self, tour: Tour, ids: Iterable[int], mark: Any = None) -> AsyncIterator[Page]:
        """Ask again for ids that could not be read; whatever fails here was known to fail and stops nothing."""
        for some in _paged(ids, self.page_size):
            read = await tour.api.read(some)
            tour.ask_again(read.missing, tries=1)
            yield tour.page(read, mark)
            _raise_slow_down(read)

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
        for some in _paged(ids, self.page_size):
            if not tour.unread.has_room(len(some)):
                return
            read = await tour.api.read(some)
            yield tour.page(read)
            _raise_slow_down(read)
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
            _raise_slow_down(read)

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

    async def _backfill(self, api: Firebase, run: Run, cursor: WalkCursor | None) -> AsyncIterator[Page]:
        """Read a range of ids, page by page, then what could not be read of it once more.

        The same range asked for again goes on where it stopped; when it is through, only what is missing is read.
        """
        first, last = _range(run.options)
        newest = await api.newest_id()
        if newest < first:
            raise BadInput(f"there is nothing from {first} on: the newest item is {newest}")
        cursor = cursor or WalkCursor(start=0, walked=0)
        tour, end = Tour(api, cursor, run, newest, LOW), min(last, newest)
        for ids in _paged(range(_next_of(cursor.backfill, first, last), end + 1), self.page_size):
            if not tour.unread.has_room(len(ids)):
                raise BadInput(f"too many ids are unread; `tidings discover {PIPELINE} --unread` asks for them again")
            read, through = await tour.read_new(ids)
            cursor.backfill = Backfill(first, last, through + 1, end)
            yield tour.page(read, run.mark)
            _raise_slow_down(read)
        async for page in self._retry(tour, tour.unread.between(first, end), run.mark):
            yield page
        left = tour.unread.between(first, end)
        cursor.backfill = Backfill(first, last, end + 1, end) if left else None
        note = f"read from {first} to {end}"
        if left:
            note += f"; {_named(left)}; the same command asks for them again"
        yield Page((), cursor=msgspec.to_builtins(cursor), mark=run.mark, note=note)

    async def _read_unread(self, api: Firebase, run: Run, cursor: WalkCursor | None) -> AsyncIterator[Page]:
        """Ask for everything that could not be read; what fails once more has all its tries again."""
        cursor = cursor or WalkCursor(start=0, walked=0)
        tour = Tour(api, cursor, run, newest=cursor.walked)
        tour.unread.restart()
        async for page in self._retry(tour, list(map(int, cursor.unread)), run.mark):
            yield page
        note = _named(sorted(map(int, cursor.unread))) if cursor.unread else None
        yield Page((), cursor=msgspec.to_builtins(cursor), mark=run.mark, note=note)


def _raise_slow_down(read: ItemsRead) -> None:
    """Pass a rate limit on, after the page was yielded: what was read before it is kept."""
    if read.slow_down is not None:
        raise read.slow_down


def _next_of(unfinished: Backfill | None, first: int, last: int) -> int:
    """Return where to go on with a range: an unfinished one is known by its ends."""
    if unfinished is not None and (unfinished.first, unfinished.last) == (first, last):
        return unfinished.next
    return first


def _named(ids: Sequence[int]) -> str:
    """Say which ids are missing: the first few by name."""
    more = f" and {len(ids) - NAMED_MAX} more" if len(ids) > NAMED_MAX else ""
    count = "1 id" if len(ids) == 1 else f"{len(ids)} ids"
    return f"{count} could not be read: {', '.join(map(str, ids[:NAMED_MAX]))}{more}"


def _range(options: Any) -> tuple[int, int]:
    first, last = options.get("from"), options.get("to")
    if not isinstance(first, int) or not isinstance(last, int) or not 1 <= first <= last:
        raise BadInput(f"a backfill needs two ids, from 1 up and in order, not {first!r} and {last!r}")
    return first, last


def _paged(ids: Iterable[int], size: int) -> Iterator[list[int]]:
    rest = iter(ids)
    while some := list(islice(rest, size)):
        yield some
