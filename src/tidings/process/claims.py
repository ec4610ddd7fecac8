"""Claims: what this process takes next, from the lanes and from the log, and when it is worth looking again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidings.model.contracts import Executor, Items, Log
from tidings.model.errors import StoreUnavailable
from tidings.model.item import Lease
from tidings.model.pace import Pace
from tidings.model.settlement import Reservation
from tidings.model.workflow import NOTIFY, PURE
from tidings.process.holder import Holder
from tidings.process.lanes import LANES, Lane
from tidings.process.shares import Shares, Starting
from tidings.process.tally import Tally, tell_merged
from tidings.watch.logs import event

LOG_BATCHES = 2
"""How many batches of the pure lane are claimed from the log at once. An append waits while they are written."""
RESERVED_SECONDS_MAX = 15.0
"""Short: while a reservation lasts, what comes after it in the log is not written."""
ACTIVE_SECONDS = 1.0
"""For how long the list of paused pipelines is believed: every lane asks for it before every claim."""


@dataclass(slots=True, kw_only=True)
class Claims:
    """One process's claims. `under_way` counts those whose answer has not come yet."""

    items: Items
    log: Log
    executor: Executor
    holder: Holder
    tally: Tally
    shares: Shares
    starting: Starting | None
    owner: str
    pipelines: tuple[str, ...]
    lanes: Mapping[str, Lane]
    paused: Callable[[], Mapping[str, str]]
    poll_seconds: float
    reserved_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    under_way: int = 0
    _active: tuple[str, ...] = ()
    _active_read: float = float("-inf")

    async def active(self) -> tuple[str, ...]:
        """Return the pipelines that are not paused."""
        if self.monotonic() - self._active_read > ACTIVE_SECONDS:
            paused = await self.executor.read(self.paused)
            self._active = tuple(name for name in self.pipelines if f"pipeline:{name}" not in paused)
            self._active_read = self.monotonic()
        return self._active

    async def pipelines_due(self, lane: str) -> list[str]:
        """Return the pipelines with something to start in a lane.

        Asked before a claim: on SQLite a claim that finds nothing would still take the one write lock.
        """
        active = self.shares.open_to(await self.active(), lane)
        return await self.executor.read(self.items.with_due, active, lane)

    async def claim(self, pipeline: str, lane: str, room: int) -> list[Lease]:
        """Claim what is due in a lane: as much as there is room for, and as the pipeline may have."""
        limit = min(room, self.lanes[lane].batch, self.shares.room(pipeline, lane))
        if limit < 1:
            return []
        self.under_way += 1
        asked_at = self.monotonic()
        try:
            rate = self.shares.of(pipeline, lane).rate_per_minute
            leases = await self.executor.write(
                self.items.claim if rate is None else partial(self._claim_at_rate, rate),
                pipeline,
                lane,
                limit,
                owner=self.owner,
                lease_seconds=self.holder.grant_seconds,
                in_order=self.lanes[lane].in_order,
                suspects_alone=lane == PURE,
            )
            self.holder.take(leases, asked_at)
            if leases:
                self.tally.load(pipeline, len(leases), leases[-1].granted_at)
        finally:
            self.under_way -= 1
        if leases:
            event("loaded", level=logging.DEBUG, pipeline=pipeline, lane=lane, loaded=len(leases))
        return leases

    def _claim_at_rate(self, rate: float, pipeline: str, lane: str, limit: int, **how: Any) -> list[Lease]:
        """Claim as many as the pipeline's own rate allows; all processes share that rate, so the claim is counted."""
        assert self.starting is not None, "a rate of a pipeline needs the store that counts it"
        with self.starting(f"lane:{pipeline}:{lane}", rate) as starts:
            leases = self.items.claim(pipeline, lane, min(limit, starts.free), **how) if starts.free else []
            starts.made = len(leases)
        if not starts.free:
            # Looked at again soon: the wait was measured by the database's clock, which may be set.
            self.shares.hold(pipeline, lane, min(self.poll_seconds, starts.wait_ms / 1000))
        return leases

    async def claim_findings(self, pipeline: str) -> tuple[int, Reservation | None]:
        """Claim a pipeline's next findings from the log: return how many were merged, and which are to be run."""
        pure, share = self.lanes.get(PURE, LANES[PURE]), self.shares.of(pipeline, PURE)
        self.under_way += 1
        try:
            merged, reservation = await self.executor.write(
                self.log.claim_findings,
                pipeline,
                LOG_BATCHES * (share.batch or pure.batch),
                lease_seconds=self.reserved_seconds,
                # Findings that run before their birth are not claimed, and would not be held to a rate.
                may_reserve=PURE in self.lanes and (pure.rate_per_minute or share.rate_per_minute) is None,
            )
            tell_merged(pipeline, merged)
            if reservation is not None:
                self.tally.load(pipeline, len(reservation.findings), reservation.granted_at)
        finally:
            self.under_way -= 1
        return merged.read, reservation

    async def wait_seconds(self, lane: str, pace: Pace) -> float:
        """Return how long a lane may sleep: until the next item is due, or until it is time to look again."""
        try:
            active = await self.active()
            due = await self.executor.read(self.items.next_due_ms, self.shares.open_to(active, lane), (lane,))
        except StoreUnavailable:
            return self.poll_seconds
        opens = self.shares.opens_in(active, lane)
        waits = [self.poll_seconds if due is None else due / 1000, self.poll_seconds if opens is None else opens]
        # At least 5 ms: an item that is due in this moment, but leased by another worker, must not make a busy loop.
        return min(self.poll_seconds, max(0.005, pace.wait_seconds(), min(waits)))

    async def is_anything_due(self, within_seconds: float, *, with_log: bool) -> bool:
        """Tell whether there is a finding to merge, or an item that is due by then."""
        active = await self.active()
        for name in active if with_log else ():
            if await self.executor.read(self.log.unmerged, name):
                return True
        due = await self.executor.read(self.items.next_due_ms, active, tuple(self.lanes))
        return due is not None and due <= within_seconds * 1000

    async def next_notice_seconds(self) -> float | None:
        """Return how long until the next notice is due, where this process sends any."""
        if NOTIFY not in self.lanes:
            return None
        due = await self.executor.read(self.items.next_due_ms, await self.active(), (NOTIFY,))
        return None if due is None else due / 1000
