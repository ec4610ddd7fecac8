"""Batches: what a worker runs in a thread and settles as one, leased items and reserved findings alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from tidings.model.attempt import Attempt, Bodies, relate
from tidings.model.contracts import Executor, Items, Log
from tidings.model.endings import describe
from tidings.model.errors import StoreUnavailable
from tidings.model.item import Lease
from tidings.model.settlement import Reservation, Settlement
from tidings.process.holder import Holder
from tidings.process.lanes import Places
from tidings.process.runner import Runner
from tidings.process.settler import Settler
from tidings.process.waker import Waker
from tidings.watch.logs import Seldom

T = TypeVar("T")
# Pure work needs the interpreter all the time. A second thread would only take turns with the first.
BATCHES_IN_FLIGHT = 1
RUN_SHARE = 1 / 3
"""Of a reservation's length: findings that were not run by then are merged as usual, before the reservation is over."""


@dataclass(slots=True, kw_only=True)
class Batches:
    """One process's batches of pure work."""

    items: Items
    log: Log
    runner: Runner
    executor: Executor
    settler: Settler
    holder: Holder
    waker: Waker
    reserved_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    _settling_leased: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, 1))
    """One batch is settled at a time, in the order they were run: the next one is run meanwhile."""
    _settling_reserved: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, 1))
    """Apart from that of leased batches: a stretch may have to wait for the one before it, in another process."""
    _cpu: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, BATCHES_IN_FLIGHT, "pure"))
    _reservations: dict[int, Reservation] = field(default_factory=dict)
    _seldom: Seldom = field(default_factory=Seldom)

    async def run_leased(self, leases: list[Lease], places: Places) -> None:
        """Carry a batch through its pure transitions in a thread, and settle it as one."""
        try:
            settlements, paused = await self._in_thread(self._run_pure, leases, self.holder.grant_seconds, float("inf"))
            while paused:
                bodies = await self._prefetch(paused)
                resumed, paused = await self._in_thread(self._resume, paused, bodies)
                settlements += resumed
        except asyncio.CancelledError:
            places.release()
            raise  # the drain gives the leases back
        except BaseException:
            places.release()
            self.holder.forget(leases)
            raise
        await self._settle_batch(settlements, places, leases, self._settling_leased)

    async def _settle_batch(
        self, settlements: list[Settlement], places: Places, leases: list[Lease], settling: asyncio.Semaphore
    ) -> None:
        """Settle one batch at a time, in order.

        Its place is free before that: the next batch is claimed while this one is settled, and on SQLite both share one
        COMMIT.
        """
        has_place = True
        try:
            async with settling:
                has_place = False
                places.release()
                await self.settler.settle(settlements)
        except asyncio.CancelledError:
            raise  # the drain gives the leases back
        except BaseException:
            self.holder.forget(leases)
            raise
        else:
            self.holder.forget(leases)
        finally:
            if has_place:
                places.release()

    async def run_reserved(self, reservation: Reservation, places: Places) -> None:
        """Run findings before their items are born, and settle them as one: each item is written once."""
        # Noted before anything can fail: the drain gives back what stands here.
        self._reservations[reservation.batch] = reservation
        seconds = self.reserved_seconds * RUN_SHARE
        settlements: list[Settlement] = []
        try:
            # In the thread: building a thousand leases takes milliseconds in which the event loop would renew no lease.
            leases = await self._in_thread(reservation.leases)
            until = self.monotonic() + seconds
            # Attempts that have to see other items are dropped. The settle merges their findings, and they are claimed
            # later, when everything before them in the log is written and can be seen.
            settlements, _ = await self._in_thread(self._run_pure, leases, seconds, until)
        except asyncio.CancelledError:
            places.release()
            raise  # the drain gives the reservation back
        except Exception as error:  # noqa: BLE001  # each item gets its own attempt
            self._seldom.event("running before birth failed", pipeline=reservation.pipeline, error=describe(error))
        try:
            if settlements:
                await self._settle_batch(settlements, places, [], self._settling_reserved)
            else:
                places.release()
                await self.executor.write(self.log.give_back, reservation)
                self.waker.wake_all()
        except asyncio.CancelledError:
            raise
        except StoreUnavailable:
            self._reservations.pop(reservation.batch, None)
            raise  # the reservation runs out, and the next claim merges what it held
        except Exception as error:  # noqa: BLE001  # one outcome must not hold up the others: each gets its own attempt
            self._seldom.event("running before birth failed", pipeline=reservation.pipeline, error=describe(error))
            await self.executor.write(self.log.give_back, reservation)
            self.waker.wake_all()
        self._reservations.pop(reservation.batch, None)

    async def _in_thread(self, call: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._cpu, call, *args)

    def _run_pure(
        self, leases: list[Lease], lease_seconds: float, until: float = float("inf")
    ) -> tuple[list[Settlement], list[Attempt]]:
        """Make an attempt at each until it is late; return how they ended, and those that need to see other items."""
        settlements: list[Settlement] = []
        paused: list[Attempt] = []
        for lease in leases:
            if self.monotonic() > until:
                break
            attempt = self.runner.begin(lease, lease_seconds)
            settlement = attempt if isinstance(attempt, Settlement) else self.runner.run_pure(attempt)
            if settlement is not None:
                settlements.append(settlement)
            elif isinstance(attempt, Attempt):
                paused.append(attempt)
        return settlements, paused

    def _resume(self, paused: list[Attempt], bodies: Mapping[str, Bodies]) -> tuple[list[Settlement], list[Attempt]]:
        """Go on with attempts that can see now what they need; a later step may need to see more."""
        for attempt in paused:
            relate(attempt, bodies[attempt.lease.pipeline])
        ended = [(attempt, self.runner.run_pure(attempt)) for attempt in paused]
        return [s for _, s in ended if s is not None], [attempt for attempt, s in ended if s is None]

    async def _prefetch(self, paused: list[Attempt]) -> dict[str, Bodies]:
        """Read what attempts need of other items, once for the batch, by pipeline."""
        refs: dict[str, set[str]] = {}
        for attempt in paused:
            refs.setdefault(attempt.lease.pipeline, set()).update(attempt.needs)
        return {
            pipeline: await self.executor.read(self.items.prefetch, pipeline, sorted(names))
            for pipeline, names in refs.items()
        }

    async def give_back(self, seconds: float) -> None:
        """Let others merge what was reserved and is not written."""
        try:
            async with asyncio.timeout(seconds):
                for reservation in tuple(self._reservations.values()):
                    await self.executor.write(self.log.give_back, reservation)
        except Exception as error:  # noqa: BLE001  # the reservations run out by themselves
            self._seldom.event("release failed", error=describe(error), reservations=len(self._reservations))

    def close(self) -> None:
        """Wait for no thread: one that hangs must not keep the process."""
        self._cpu.shutdown(wait=False, cancel_futures=True)
