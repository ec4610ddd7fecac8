"""The worker: claims what is due, makes attempts and settles them; and does the same with findings in the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidings.model.contracts import Executor, Items, Kit, Log
from tidings.model.endings import describe
from tidings.model.errors import StoreUnavailable
from tidings.model.item import Lease
from tidings.model.pace import Pace
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Settlement
from tidings.model.workflow import PURE
from tidings.process.batches import BATCHES_IN_FLIGHT, Batches
from tidings.process.holder import GRANT_SECONDS, Holder
from tidings.process.runner import Runner
from tidings.process.settler import Settler
from tidings.process.shares import Share, Shares, Starting
from tidings.process.tally import Record, RecordRun, Tally, tell_merged
from tidings.process.waker import Waker
from tidings.watch.logs import Seldom, event
from tidings.watch.metrics import Metrics

POLL_SECONDS = 1.0
GRACE_SECONDS = 18.0
"""How long attempts may go on once a process is told to stop. Within 25 s it must be gone, giving back included."""
RELEASE_SECONDS = 2.0
"""What the store does not take back by then runs out by itself."""
LOG = "log"
LOG_BATCHES = 2
"""How many batches of the pure lane are claimed from the log at once. An append waits while they are written."""
RESERVED_SECONDS_MAX = 15.0
"""Short: while a reservation lasts, what comes after it in the log is not written."""


@dataclass(frozen=True, slots=True)
class Lane:
    """How much of one kind of work a process does at once."""

    concurrency: int = 4
    batch: int = 100
    rate_per_minute: float | None = None
    in_order: bool = False


NOTIFY = "notify"
LANES = {
    PURE: Lane(concurrency=1, batch=1000),
    "fetch": Lane(concurrency=16),
    "ai": Lane(concurrency=4),
    NOTIFY: Lane(concurrency=1, in_order=True),
}


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
        self._items = items
        self._log = log
        self._runner = runner
        self._kit = kit
        self._executor = executor
        self._pipelines = pipelines
        self._owner = owner
        self._waker = waker
        self._lanes = {n: lane for n, lane in lanes.items() if only_lane in (None, n)}
        self._lease_seconds = lease_seconds
        self._poll_seconds = poll_seconds
        self._monotonic = monotonic
        self._read_paused = paused
        self._merges = only_lane is None
        self._holder = Holder(
            items=items,
            executor=executor,
            attempt_seconds=lease_seconds,
            grant_seconds=grant_seconds,
            monotonic=monotonic,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._shares = Shares(shares or {}, now=monotonic)
        self._starting = starting
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
        self._batches = Batches(
            items=items,
            log=log,
            runner=runner,
            executor=executor,
            settler=self._settler,
            holder=self._holder,
            waker=waker,
            reserved_seconds=min(lease_seconds, RESERVED_SECONDS_MAX),
            monotonic=monotonic,
        )
        self._pure_lane = lanes.get(PURE, LANES[PURE])
        self._seldom = Seldom()
        self._stop = asyncio.Event()
        self._active: tuple[str, ...] = tuple(pipelines)
        self._active_read = float("-inf")
        self._busy = 0
        self._started = 0

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
        await self._end_within(grace_seconds, set(loops))
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
    ) -> None:
        """Work until nothing is due now (or within `wait_for_due_seconds`) or `stop` is set, then stop.

        Notices that are due within `wait_for_notices_seconds` are waited for: they only keep to their channel's rate.
        `on_wait` hears how long until the next one.
        """
        stop = stop or asyncio.Event()
        running = asyncio.create_task(self.run(stop))
        idling = asyncio.create_task(self._idled(wait_for_due_seconds, wait_for_notices_seconds, on_wait))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({running, idling, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            idling.cancel()
            await asyncio.wait({idling, stopping})
            await running
        if not idling.cancelled():
            idling.result()

    async def _idled(
        self, wait_for_due_seconds: float, wait_for_notices_seconds: float, on_wait: Callable[[float], None]
    ) -> None:
        while True:
            while not await self._is_idle(wait_for_due_seconds):  # noqa: ASYNC110  # the fact is in the database
                await asyncio.sleep(0.02)
            notice_ms = await self._executor.read(self._next_notice_ms) if wait_for_notices_seconds else None
            if notice_ms is None or notice_ms > wait_for_notices_seconds * 1000:
                return
            on_wait(max(0.0, notice_ms / 1000))
            await asyncio.sleep(min(0.5, max(0.02, notice_ms / 1000)))

    def _next_notice_ms(self) -> int | None:
        return self._items.next_due_ms(self._active, (NOTIFY,)) if NOTIFY in self._lanes else None

    async def _is_idle(self, wait_for_due_seconds: float) -> bool:
        """Tell whether nothing is under way and nothing is due.

        The answers of the store come one after the other. An item that was leased while the store looked for what is
        due may be settled and due in its next state before that answer is here: so nothing may have changed meanwhile.
        """
        if self._is_busy or self._settler.is_busy:
            return False
        changes = self._changes
        active = await self._active_pipelines()
        if self._merges:
            for name in active:
                if await self._executor.read(self._log.unmerged, name):
                    return False
        due = await self._executor.read(self._due_in_ms, active)
        if due is not None and due <= wait_for_due_seconds * 1000:
            return False
        return not self._is_busy and self._changes == changes

    @property
    def _changes(self) -> tuple[int, int]:
        return self._holder.changes, self._started

    @property
    def _is_busy(self) -> bool:
        return bool(self._busy or self._tasks or not self._holder.is_empty)

    def _due_in_ms(self, active: Sequence[str]) -> int | None:
        return self._items.next_due_ms(active, tuple(self._lanes))

    async def _active_pipelines(self) -> tuple[str, ...]:
        """Return the pipelines that are not paused; read at most once a second."""
        # Every lane asks this before every claim.
        if self._monotonic() - self._active_read > 1.0:
            paused = await self._executor.read(self._read_paused)
            self._active = tuple(name for name in self._pipelines if f"pipeline:{name}" not in paused)
            self._active_read = self._monotonic()
        return self._active

    async def _lane_loop(self, name: str) -> None:
        lane = self._lanes[name]
        # In the pure lane a place is a whole batch, elsewhere one item.
        slots = asyncio.Semaphore(BATCHES_IN_FLIGHT if name == PURE else lane.concurrency)
        pace = Pace(lane.rate_per_minute, now=self._monotonic)
        while not self._stop.is_set():
            try:
                started = await self._start_due(name, lane, slots, pace)
            except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
                self._seldom.event("claiming failed", lane=name, error=describe(error))
                await asyncio.sleep(self._poll_seconds)
                continue
            if not started and not self._stop.is_set():
                await self._waker.wait(name, await self._nap(name, pace))

    async def _log_loop(self) -> None:
        """Turn findings into items: claim them from the log, run what can be run before its birth, settle."""
        slots = asyncio.Semaphore(self._log.reservations_max)
        while not self._stop.is_set():
            started = 0
            try:
                for pipeline in await self._active_pipelines():
                    started += await self._start_from_log(pipeline, slots)
            except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
                self._seldom.event("merging failed", error=describe(error))
                await asyncio.sleep(self._poll_seconds)
                continue
            if not started and not self._stop.is_set():
                await self._waker.wait(LOG, self._poll_seconds)

    async def _start_from_log(self, pipeline: str, slots: asyncio.Semaphore) -> int:
        """Claim the next findings of a pipeline, and start those that may be run; return how many there were."""
        if not await self._place(slots):
            return 0
        self._busy += 1
        pure, share = self._pure_lane, self._shares.of(pipeline, PURE)
        try:
            merged, reservation = await self._executor.write(
                self._log.claim_findings,
                pipeline,
                LOG_BATCHES * (share.batch or pure.batch),
                lease_seconds=self._batches.reserved_seconds,
                # Findings that run before their birth are not claimed, and would not be held to a rate.
                may_reserve=PURE in self._lanes and (pure.rate_per_minute or share.rate_per_minute) is None,
            )
            tell_merged(pipeline, merged)
            if merged.read:
                self._waker.wake_all()
            if reservation is None:
                slots.release()
                return merged.read
            self._tally.load(pipeline, len(reservation.findings), reservation.granted_at)
            self._spawn(self._batches.run_reserved(reservation, slots))
            return merged.read + len(reservation.findings)
        except BaseException:
            slots.release()
            raise
        finally:
            self._busy -= 1

    async def _nap(self, name: str, pace: Pace) -> float:
        """Return how long to sleep: until the next item is due, or until it is time to look again."""
        try:
            active = await self._active_pipelines()
            due = await self._executor.read(self._items.next_due_ms, self._shares.open_to(active, name), (name,))
        except StoreUnavailable:
            return self._poll_seconds
        opens = self._shares.opens_in(active, name)
        waits = [self._poll_seconds if due is None else due / 1000, self._poll_seconds if opens is None else opens]
        # At least 5 ms: an item that is due in this moment, but leased by another worker, must not make a busy loop.
        return min(self._poll_seconds, max(0.005, pace.wait_seconds(), min(waits)))

    async def _start_due(self, name: str, lane: Lane, slots: asyncio.Semaphore, pace: Pace) -> int:
        """Claim and start what is due; waiting lanes claim only as many as they can start at once."""
        started = 0
        active = self._shares.open_to(await self._active_pipelines(), name)
        # A look first: on SQLite a claim that finds nothing would still take the one write lock.
        for pipeline in await self._executor.read(self._items.with_due, active, name):
            if not await self._place(slots):
                break
            room = lane.batch if name == PURE else 1 + _free(slots)
            try:
                leases = await self._claim(
                    pipeline, name, min(room, lane.batch, pace.free(), self._shares.room(pipeline, name)), lane.in_order
                )
            except BaseException:
                slots.release()
                raise
            started += len(leases)
            pace.take(len(leases))
            if not leases:
                slots.release()
            elif name == PURE:
                self._spawn(self._batches.run_leased(leases, slots))
            else:
                for number, lease in enumerate(leases):
                    # The first place was taken above, before the claim.
                    if number:
                        await slots.acquire()
                    self._shares.begin(pipeline, name)
                    self._spawn(self._run_one(lease, name, slots))
        return started

    async def _place(self, slots: asyncio.Semaphore) -> bool:
        """Wait for a free place; False where the worker is told to stop first."""
        if not slots.locked():
            await slots.acquire()
        else:
            # A long attempt may hold the last place: a worker that is told to stop does not wait for it here.
            taking, stopping = asyncio.create_task(slots.acquire()), asyncio.create_task(self._stop.wait())
            await asyncio.wait({taking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not taking.done():
                taking.cancel()
                return False
        if self._stop.is_set():
            slots.release()
            return False
        return True

    async def _claim(self, pipeline: str, lane: str, limit: int, in_order: bool) -> list[Lease]:
        if limit < 1:
            return []
        self._busy += 1
        asked_at = self._monotonic()
        try:
            rate = self._shares.of(pipeline, lane).rate_per_minute
            leases = await self._executor.write(
                self._items.claim if rate is None else partial(self._claim_at_rate, rate),
                pipeline,
                lane,
                limit,
                owner=self._owner,
                lease_seconds=self._holder.grant_seconds,
                in_order=in_order,
                suspects_alone=lane == PURE,
            )
            self._holder.take(leases, asked_at)
            if leases:
                self._tally.load(pipeline, len(leases), leases[-1].granted_at)
        finally:
            self._busy -= 1
        if leases:
            event("loaded", level=logging.DEBUG, pipeline=pipeline, lane=lane, loaded=len(leases))
        return leases

    def _claim_at_rate(self, rate: float, pipeline: str, lane: str, limit: int, **how: Any) -> list[Lease]:
        """Claim as many as the pipeline's own rate allows; all processes share that rate, so the claim is counted."""
        assert self._starting is not None, "a rate of a pipeline needs the store that counts it"
        with self._starting(f"lane:{pipeline}:{lane}", rate) as starts:
            leases = self._items.claim(pipeline, lane, min(limit, starts.free), **how) if starts.free else []
            starts.made = len(leases)
        if not starts.free:
            # Looked at again soon: the wait was measured by the database's clock, which may be set.
            self._shares.hold(pipeline, lane, min(self._poll_seconds, starts.wait_ms / 1000))
        return leases

    def _spawn(self, work: Any) -> None:
        self._started += 1
        task = asyncio.create_task(work)
        self._tasks.add(task)
        # The set keeps the task alive: asyncio itself holds only a weak reference.
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Nothing was settled, so the leases run out and are swept: that costs each item an attempt, not the worker
            # its life.
            self._seldom.event("attempt lost", error=describe(error))

    async def _run_one(self, lease: Lease, lane: str, slots: asyncio.Semaphore) -> None:
        started = self._monotonic()
        try:
            attempt = self._runner.begin(lease, self._lease_seconds)
            if isinstance(attempt, Settlement):
                settlement = attempt
            else:
                self._holder.begin(lease, attempt.work)
                prefetch = partial(self._executor.read, self._items.prefetch, lease.pipeline)
                settlement = await self._runner.run_waiting(attempt, self._kit, self._lease_seconds, prefetch)
            self._tally.observe(settlement, self._monotonic() - started)
            self._settler.put(settlement)
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._holder.forget([lease])
            raise
        finally:
            slots.release()
            self._shares.end(lease.pipeline, lane)
            if self._shares.of(lease.pipeline, lane).concurrency is not None:
                # The lane may be asleep although it has places: this pipeline had none.
                self._waker.wake(lane)

    async def _end_within(self, seconds: float, tasks: set[asyncio.Task[None]]) -> None:
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _drain(self, until: float) -> None:
        """Let attempts under way finish and settle; cancel what does not, and give its leases back."""
        await self._end_within(max(0.0, until - self._monotonic()), self._tasks)
        await self._settler.finish(max(1.0, until - self._monotonic()))
        # An attempt that was made and could not be written is not given back as unused: a notice may have been posted.
        # Its lease runs out, which is counted.
        self._holder.forget(self._settler.unsettled)
        await self._holder.give_back(RELEASE_SECONDS)
        await self._batches.give_back(RELEASE_SECONDS)


def _free(slots: asyncio.Semaphore) -> int:
    return slots._value
