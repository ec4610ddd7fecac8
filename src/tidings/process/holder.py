"""The holder: what this process has leased, renewed while it lives and given up where it is lost.

Leases are short, because they are what a killed process costs its items. A batch that is settled in a few seconds is
never renewed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidings.model.contracts import Executor, Items
from tidings.model.endings import describe
from tidings.model.item import Lease
from tidings.model.settlement import Settlement
from tidings.model.workflow import Work
from tidings.process.runner import DEADLINE_SHARE
from tidings.watch.logs import Seldom, event

GRANT_SECONDS = 60.0
"""How long a lease lasts unless it is renewed."""
RENEW_SHARE = 1 / 3
"""A lease this old is renewed. Two thirds are left for a slow store, a busy machine, a second and a third try."""
JOIN_SHARE = 1 / 6
"""Those this old are renewed along with it, in the same transaction."""
LOOK_SHARE = 1 / 12
AGAIN_SECONDS = 1.0


@dataclass(slots=True)
class _Hold:
    """One lease. Times are this process's own clock, read before the store was asked: never later than the grant."""

    lease: Lease
    began: float
    granted: float
    work: Work | None = None
    task: asyncio.Task[object] | None = None


class Holder:
    """The leases of one process."""

    def __init__(
        self,
        *,
        items: Items,
        executor: Executor,
        attempt_seconds: float,
        grant_seconds: float = GRANT_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._items = items
        self._executor = executor
        self._attempt_seconds = attempt_seconds
        self.grant_seconds = min(grant_seconds, attempt_seconds)
        self._monotonic = monotonic
        self._holds: dict[int, _Hold] = {}
        self.changes = 0
        """Grows whenever something is held or given up."""
        self._has_failed = False
        self._seldom = Seldom()

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is held."""
        return not self._holds

    def take(self, leases: Sequence[Lease], asked_at: float) -> None:
        """Hold leases that were asked for at that time."""
        self.changes += len(leases)
        for lease in leases:
            self._holds[lease.id] = _Hold(lease, asked_at, asked_at)

    def begin(self, lease: Lease, work: Work) -> None:
        """Watch over an attempt that waits: its deadline moves with its lease, and it ends where that is lost."""
        hold = self._holds.get(lease.id)
        # It may have been lost while the attempt waited for its turn in this process.
        if hold is None or hold.lease.token != lease.token:
            work.deadline = float("-inf")  # lost before it began
            return
        hold.work, hold.task = work, asyncio.current_task()
        self._set_deadline(hold)

    def forget(self, closed: Sequence[Lease | Settlement]) -> None:
        """Hold these no longer."""
        self.changes += len(closed)
        for each in closed:
            # The item may be here again under a newer token: it was settled, was due at once, and the next claim
            # brought it.
            if (hold := self._holds.get(each.id)) is not None and hold.lease.token == each.right.token:
                del self._holds[each.id]

    async def run(self) -> None:
        """Renew leases until cancelled."""
        pause = self.grant_seconds * LOOK_SHARE
        while True:
            await asyncio.sleep(min(pause, AGAIN_SECONDS) if self._has_failed else pause)
            try:
                await self.renew()
                self._has_failed = False
            except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
                self._has_failed = True
                self._seldom.event("heartbeat failed", error=describe(error), leases=len(self._holds))

    async def renew(self) -> None:
        """Renew what has grown old, in one transaction, and give up what is lost."""
        asked_at = self._monotonic()
        aging = self._aging(asked_at)
        if not aging:
            return
        # After a failure some leases may have run out. `regain` takes them up again where the token still stands, which
        # proves that no process has claimed or swept the item since; `renew` would report them as lost.
        renew = self._items.regain if self._has_failed else self._items.renew
        tokens = [(hold.lease.id, hold.lease.token) for hold in aging]
        held = await self._executor.write(renew, tokens, self.grant_seconds)
        for hold in aging:
            if hold.lease.id in held:
                # The time before the question, not after the answer: the database granted the lease somewhere in
                # between.
                hold.granted = asked_at
                self._set_deadline(hold)
            else:
                self._give_up(hold)

    def _aging(self, now: float) -> list[_Hold]:
        """Return what to renew. An attempt that takes longer than `lease_seconds` is left to run out."""
        grant, most = self.grant_seconds, self._attempt_seconds
        old = [h for h in self._holds.values() if now - h.granted >= grant * JOIN_SHARE and now - h.began < most]
        return old if any(now - hold.granted >= grant * RENEW_SHARE for hold in old) else []

    def _set_deadline(self, hold: _Hold) -> None:
        if hold.work is not None:
            granted, began = hold.granted + self.grant_seconds * DEADLINE_SHARE, hold.began
            hold.work.deadline = min(granted, began + self._attempt_seconds * DEADLINE_SHARE)

    def _give_up(self, hold: _Hold) -> None:
        """Forget a lease that is lost or was just settled; an attempt that still waits ends, before it does more."""
        self.forget([hold.lease])
        if hold.task is not None and not hold.task.done():
            event("lease lost", pipeline=hold.lease.pipeline, item=hold.lease.id)
            # Another worker may hold the item by now. Whatever this attempt still does, such as sending, would be done
            # twice.
            hold.task.cancel()

    async def give_back(self, seconds: float) -> None:
        """Return all that is still held, with its attempts."""
        left = [(hold.lease.id, hold.lease.token) for hold in self._holds.values()]
        # First, so that a renewal that is under way does not give up what is being released.
        self._holds.clear()
        if not left:
            return
        try:
            async with asyncio.timeout(seconds):
                event("released", leases=await self._executor.write(self._items.release, left))
        except Exception as error:  # noqa: BLE001  # the leases run out by themselves
            self._seldom.event("release failed", error=describe(error), leases=len(left))
