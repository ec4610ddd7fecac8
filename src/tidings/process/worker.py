"""The worker: claims what is due, makes attempts and settles them; and does the same with findings in the log."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping

from tidings.model.contracts import Executor, Items, Kit, Log
from tidings.model.endings import describe
from tidings.model.item import Lease
from tidings.model.pace import Pace
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import PURE
from tidings.process.batches import BATCHES_IN_FLIGHT, Batches
from tidings.process.claims import RESERVED_SECONDS_MAX, Claims
from tidings.process.holder import GRANT_SECONDS, Holder
from tidings.process.idleness import Idleness
from tidings.process.lanes import LANES, Lane, Places
from tidings.process.runner import Runner
from tidings.process.settler import Settler
from tidings.process.shares import Share, Shares, Starting
from tidings.process.singles import Singles
from tidings.process.tally import Record, RecordRun, Tally
from tidings.process.tasks import Tasks, end_within
from tidings.process.waker import Waker
from tidings.watch.logs import Seldom
from tidings.watch.metrics import Metrics

POLL_SECONDS = 1.0
GRACE_SECONDS = 18.0
"""How long attempts may go on once a process is told to stop. Within 25 s it must be gone, giving back included."""
RELEASE_SECONDS = 2.0
"""What the store does not take back by then runs out by itself."""
LOG = "log"


class Worker:
    """One process's share of the work. `run` until told to stop, or `until_idle`."""

    def __init__(
        self,
        *,
        items: Items,
        log: Log,
        runner: Runner,
        kit: Kit,
        executor: Executor,
        pipelines: Mapping[str, Pipeline],
        owner: str,
        waker: Waker,
        lanes: Mapping[str, Lane] = LANES,
        lease_seconds: float = 900.0,
        grant_seconds: float = GRANT_SECONDS,
        paused: Callable[[], Mapping[str, str]] = dict,
        metrics: Metrics | None = None,
        only_lane: str | None = None,
        record: Record | None = None,
        record_run: RecordRun | None = None,
        shares: Mapping[str, Mapping[str, Share]] | None = None,
        starting: Starting | None = None,
        poll_seconds: float = POLL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._waker = waker
        self._lanes = {n: lane for n, lane in lanes.items() if only_lane in (None, n)}
        self._poll_seconds = poll_seconds
        self._monotonic = monotonic
        self._merges = only_lane is None
        self._holder = Holder(
            items=items,
            executor=executor,
            attempt_seconds=lease_seconds,
            grant_seconds=grant_seconds,
            monotonic=monotonic,
        )
        self._tasks = Tasks()
        self._shares = Shares(shares or {}, now=monotonic)
        self._tally = Tally(
            owner=owner,
            executor=executor,
            metrics=metrics,
            record=record,
            record_run=record_run,
            monotonic=monotonic,
        )
        self._settler = Settler(
            items=items,
            executor=executor,
            waker=waker,
            report=self._tally.report,
            forget=self._holder.forget,
            lease_seconds=lease_seconds,
            grant_seconds=self._holder.grant_seconds,
            monotonic=monotonic,
        )
        reserved_seconds = min(lease_seconds, RESERVED_SECONDS_MAX)
        self._batches = Batches(
            items=items,
            log=log,
            runner=runner,
            executor=executor,
            settler=self._settler,
            holder=self._holder,
            waker=waker,
            reserved_seconds=reserved_seconds,
            monotonic=monotonic,
        )
        self._singles = Singles(
            items=items,
            runner=runner,
            kit=kit,
            executor=executor,
            settler=self._settler,
            holder=self._holder,
            tally=self._tally,
            shares=self._shares,
            waker=waker,
            lease_seconds=lease_seconds,
            monotonic=monotonic,
        )
        self._claims = Claims(
            items=items,
            log=log,
            executor=executor,
            holder=self._holder,
            tally=self._tally,
            shares=self._shares,
            starting=starting,
            owner=owner,
            pipelines=tuple(pipelines),
            lanes=self._lanes,
            paused=paused,
            poll_seconds=poll_seconds,
            reserved_seconds=reserved_seconds,
            monotonic=monotonic,
        )
        self._idleness = Idleness(
            claims=self._claims,
            with_log=self._merges,
            is_busy=lambda: self._is_busy,
            changes=lambda: (self._holder.changes, self._tasks.started),
        )
        self._seldom = Seldom()
        self._stop = asyncio.Event()

    async def run(self, stop: asyncio.Event, grace_seconds: float = GRACE_SECONDS) -> None:
        """Work until `stop` is set; then finish or give back what is under way."""
        self._stop = stop
        loops = [asyncio.create_task(self._lane_loop(name)) for name in self._lanes]
        if self._merges:
            loops.append(asyncio.create_task(self._log_loop()))
        side = [asyncio.create_task(loop()) for loop in (self._settler.run, self._holder.run, self._tally.run)]
        await stop.wait()
        until = self._monotonic() + grace_seconds
        self._waker.wake_all()
        await end_within(grace_seconds, set(loops))
        await self._drain(until)
        for task in side:
            task.cancel()
        await asyncio.gather(*side, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._tally.finish()
        self._batches.close()

    async def until_idle(
        self,
        *,
        wait_for_due_seconds: float = 0.0,
        wait_for_notices_seconds: float = 0.0,
        on_wait: Callable[[float], None] = lambda _seconds: None,
        stop: asyncio.Event | None = None,
    ) -> bool:
        """Work until nothing is due now (or within `wait_for_due_seconds`) or `stop` is set, then stop.

        Return whether it came to nothing being due.

        Notices that are due within `wait_for_notices_seconds` are waited for: they only keep to their channel's rate.
        `on_wait` hears how long until the next one.
        """
        stop = stop or asyncio.Event()
        running = asyncio.create_task(self.run(stop))
        idling = asyncio.create_task(self._idleness.wait(wait_for_due_seconds, wait_for_notices_seconds, on_wait))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({running, idling, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            idling.cancel()
            await asyncio.wait({idling, stopping})
            await running
        if idling.cancelled():
            return False
        idling.result()
        return True

    @property
    def _is_busy(self) -> bool:
        return bool(self._claims.under_way or self._tasks or not self._holder.is_empty or self._settler.is_busy)

    async def _lane_loop(self, lane: str) -> None:
        """Claim what is due in a lane and start it."""
        places = Places(BATCHES_IN_FLIGHT if lane == PURE else self._lanes[lane].concurrency)
        pace = Pace(self._lanes[lane].rate_per_minute, now=self._monotonic)
        await self._loop(
            lane,
            lambda: self._start_due(lane, places, pace),
            lambda: self._claims.wait_seconds(lane, pace),
        )

    async def _log_loop(self) -> None:
        """Turn findings into items: claim them from the log, run what can be run before its birth, settle."""
        places = Places(self._log.reservations_max)

        async def start() -> int:
            return sum([await self._start_from_log(pipeline, places) for pipeline in await self._claims.active()])

        async def wait_seconds() -> float:
            return self._poll_seconds

        await self._loop(LOG, start, wait_seconds)

    async def _loop(
        self, name: str, start: Callable[[], Awaitable[int]], wait_seconds: Callable[[], Awaitable[float]]
    ) -> None:
        """Start what there is until told to stop; where there is nothing, sleep until woken or until it is time."""
        while not self._stop.is_set():
            try:
                started = await start()
            except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
                self._seldom.event("claiming failed", lane=name, error=describe(error))
                await asyncio.sleep(self._poll_seconds)
                continue
            if not started and not self._stop.is_set():
                await self._waker.wait(name, await wait_seconds())

    async def _start_from_log(self, pipeline: str, places: Places) -> int:
        """Claim the next findings of a pipeline, and start those that may be run; return how many there were."""
        if not await places.take(self._stop):
            return 0
        try:
            merged, reservation = await self._claims.claim_findings(pipeline)
        except BaseException:
            places.release()
            raise
        if merged:
            self._waker.wake_all()
        if reservation is None:
            places.release()
            return merged
        self._tasks.start(self._batches.run_reserved(reservation, places))
        return merged + len(reservation.findings)

    async def _start_due(self, lane: str, places: Places, pace: Pace) -> int:
        """Claim and start what is due; waiting lanes claim only as many as they can start at once."""
        started = 0
        for pipeline in await self._claims.pipelines_due(lane):
            if not await places.take(self._stop):
                break
            room = self._lanes[lane].batch if lane == PURE else 1 + places.free
            try:
                leases = await self._claims.claim(pipeline, lane, min(room, pace.free()))
            except BaseException:
                places.release()
                raise
            started += len(leases)
            pace.take(len(leases))
            if not leases:
                places.release()
            elif lane == PURE:
                self._tasks.start(self._batches.run_leased(leases, places))
            else:
                await self._start_each(leases, lane, places)
        return started

    async def _start_each(self, leases: list[Lease], lane: str, places: Places) -> None:
        for number, lease in enumerate(leases):
            # The first place was taken before the claim.
            if number:
                await places.acquire()
            self._shares.begin(lease.pipeline, lane)
            self._tasks.start(self._singles.run(lease, lane, places))

    async def _drain(self, until: float) -> None:
        """Let attempts under way finish and settle; cancel what does not, and give its leases back."""
        await self._tasks.end_within(max(0.0, until - self._monotonic()))
        await self._settler.finish(max(1.0, until - self._monotonic()))
        # An attempt that was made and could not be written is not given back as unused: a notice may have been posted.
        # Its lease runs out, which is counted.
        self._holder.forget(self._settler.unsettled)
        await self._holder.give_back(RELEASE_SECONDS)
        await self._batches.give_back(RELEASE_SECONDS)
