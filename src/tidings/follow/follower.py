"""Follows the stream of changes: catches up in batches, looks often, waits longer where something is wrong.

A follower may run in any process, die at any point and start from nothing: what it derives comes out the same, because
it keeps its position together with what it derived.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from tidings.model.changes import Changes, CursorGone, Follower
from tidings.model.contracts import Executor
from tidings.model.errors import StoreReadOnly, StoreUnavailable, TidingsError
from tidings.model.views import FollowerView
from tidings.watch.logs import Seldom, event

BATCH = 1_000
LOOK_SECONDS = 0.2
WAIT_SECONDS_MAX = 60.0
NOTE_SECONDS = 10.0
LOOK_AGAIN_SECONDS = 5.0
CATCHING_UP = 10_000
"""With more changes left than this, a line in the log tells how it goes."""
Note = Callable[[FollowerView], None]


@dataclass(slots=True)
class _Place:
    """Where a follower stands in one pipeline's stream."""

    version: int = -1
    """The newest version that was there when it last caught up."""
    position: str | None = None
    left: int = 0
    behind_since: int = 0
    """Since when changes wait for it: as long as they are there, but no longer than it looks."""


@dataclass
class FollowLoop:
    """Drives one follower."""

    follower: Follower
    stream: Changes
    executor: Executor
    pipelines: Collection[str]
    owner: str
    now_ms: Callable[[], int]
    note: Note | None = None
    """Keeps what is told of the follower where other processes can read it."""
    monotonic: Callable[[], float] = time.monotonic
    batch: int = BATCH
    error: str | None = None
    _places: dict[str, _Place] = field(default_factory=dict)
    _seldom: Seldom = field(default_factory=Seldom)
    _noted: FollowerView | None = None
    _note_at: float = float("-inf")
    _look_at: float = float("-inf")

    async def run(self, stop: asyncio.Event) -> None:
        """Follow until told to stop."""
        failures = 0
        while not stop.is_set():
            try:
                await self.catch_up(stop)
                failures, self.error = 0, None
            except StoreReadOnly as error:
                # A standby, or a user that may only read: what is kept in the database is derived elsewhere.
                if self.error is None:
                    event("not following", follower=self.follower.name, error=str(error))
                failures, self.error = 7, str(error)
            except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
                failures += 1
                self.error = str(error) if isinstance(error, TidingsError) else f"{type(error).__name__}: {error}"
                self._seldom.event("follower failed", follower=self.follower.name, error=self.error)
            await self._tell()
            # Doubled with every failure in a row: a mirror that is away is not asked five times a second for hours.
            wait = LOOK_SECONDS if not failures else min(WAIT_SECONDS_MAX, 2.0 ** min(failures - 1, 6))
            try:
                await asyncio.wait_for(stop.wait(), wait)
            except TimeoutError:
                continue

    async def catch_up(self, stop: asyncio.Event | None = None) -> int:
        """Follow until nothing is left; return how many changes there were."""
        try:
            is_our_turn = await self.follower.is_our_turn()
        except Exception:
            # The place where it keeps its data cannot be reached: what is new waits all the same, and is to be told.
            await self._measure()
            raise
        # Another process keeps what is derived. What we knew of its position may be old by the time it is our turn.
        if not is_our_turn:
            self._places.clear()
            return 0
        await self._look_again()
        versions, behind = await self._measure()
        return sum([await self._catch_up_with(n, self._place(n), versions.get(n, 0), stop) for n in behind])

    async def _measure(self) -> tuple[Mapping[str, int], list[str]]:
        """Return the newest versions, and the pipelines that have changes to follow; note how many and since when."""
        # One small read for all pipelines, five times a second. The streams themselves are read only where a version
        # moved.
        versions = await self.executor.read(self.stream.versions)
        behind = [name for name in self.pipelines if versions.get(name, 0) != self._place(name).version]
        for name in behind:
            place, newest = self._place(name), versions.get(name, 0)
            place.left = newest - max(place.version, 0)
            place.behind_since = place.behind_since or await self.executor.read(self.now_ms)
        return versions, behind

    def _place(self, pipeline: str) -> _Place:
        return self._places.setdefault(pipeline, _Place())

    async def _look_again(self) -> None:
        """Ask now and then whether what was derived is still there: a folder may be removed, a server begin empty."""
        if self.monotonic() < self._look_at:
            return
        self._look_at = self.monotonic() + LOOK_AGAIN_SECONDS
        for name, place in self._places.items():
            if place.version >= 0 and await self.follower.position(name) != place.position:
                self._seldom.event("follower follows again", follower=self.follower.name, pipeline=name)
                place.version = -1

    async def _catch_up_with(self, pipeline: str, place: _Place, version: int, stop: asyncio.Event | None) -> int:
        followed, is_full = 0, True
        position = await self.follower.position(pipeline)
        while is_full and not (stop is not None and stop.is_set()):
            try:
                page = await self.executor.read(self.stream.changes, pipeline, position, self.batch)
            except CursorGone:
                event("follower starts over", follower=self.follower.name, pipeline=pipeline)
                await self.follower.start_over(pipeline)
                position = None
                continue
            place.left, is_full = page.left + len(page.changes), page.is_full
            # A page may hold nothing and still move the position, past versions that were drawn and not used.
            if page.changes or page.position != position:
                await self.follower.follow(pipeline, page.changes, page.position)
                position, followed = page.position, followed + len(page.changes)
            place.left = page.left
            if page.left > CATCHING_UP:
                self._seldom.event("catching up", follower=self.follower.name, pipeline=pipeline, left=page.left)
            await self._tell()
        # Told to stop half way, it has not caught up: the next look must not skip the rest.
        if not is_full:
            place.version, place.left, place.behind_since = version, 0, 0
            place.position = await self.follower.position(pipeline)
        return followed

    def view(self) -> FollowerView:
        """Tell how far behind the follower is."""
        unwritten = self.follower.unwritten()
        since = [place.behind_since for place in self._places.values() if place.behind_since]
        oldest = min([*since, unwritten.since_ms] if unwritten and unwritten.since_ms else since, default=0)
        return FollowerView(
            name=self.follower.name,
            process=self.owner,
            behind=sum(place.left for place in self._places.values()) + (unwritten.changes if unwritten else 0),
            behind_seconds=max(0.0, round((self.now_ms() - oldest) / 1000, 1)) if oldest else 0.0,
            error=self.error or (unwritten.error if unwritten else None) or None,
        )

    async def _tell(self) -> None:
        """Note what changed at once, and that we are still here every now and then."""
        if self.note is None:
            return
        try:
            seen = await self.executor.read(self.view)
        except StoreUnavailable:
            return  # A follower that keeps its place in the database cannot say how it stands while that is away.
        is_news = self._noted is None or (seen.error, seen.behind > 0) != (self._noted.error, self._noted.behind > 0)
        if is_news or self.monotonic() >= self._note_at:
            self._noted, self._note_at = seen, self.monotonic() + NOTE_SECONDS
            try:
                await self.executor.write(self.note, seen)
            except Exception as error:  # noqa: BLE001  # a reader may have no right to write; it goes on all the same
                self._seldom.event("follower not noted", follower=self.follower.name, error=str(error))
