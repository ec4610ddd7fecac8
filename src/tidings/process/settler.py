"""The settler: writes how attempts ended, many at once, and does not give up while their leases may hold."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from tidings.model.contracts import Executor, Items
from tidings.model.endings import describe
from tidings.model.errors import StoreUnavailable
from tidings.model.item import Reserved
from tidings.model.settlement import Settled, Settlement
from tidings.process.tally import tell_merged
from tidings.process.waker import Waker
from tidings.watch.logs import Seldom, event, log

BATCH = 100
TURN_SECONDS = 0.002
"""How soon to ask again whether the stretch of the log before ours is written, where several workers run stretches."""
AGAIN_SECONDS = 1.0
UNWRITABLE = "the outcome could not be written"


class Settler:
    """One process's way to the store for all its attempts."""

    def __init__(
        self,
        *,
        items: Items,
        executor: Executor,
        waker: Waker,
        report: Callable[[list[Settlement], frozenset[int]], None],
        forget: Callable[[Sequence[Settlement]], None],
        lease_seconds: float,
        grant_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._items = items
        self._executor = executor
        self._waker = waker
        self._report = report
        self._forget = forget
        self._lease_seconds = lease_seconds
        self._grant_seconds = grant_seconds
        self._monotonic = monotonic
        self._waiting: asyncio.Queue[Settlement] = asyncio.Queue()
        self._unsettled: dict[tuple[int, int], Settlement] = {}
        self._seldom = Seldom()

    @property
    def is_busy(self) -> bool:
        """Tell whether attempts wait to be settled."""
        return not self._waiting.empty()

    @property
    def unsettled(self) -> list[Settlement]:
        """Return the attempts that were left here and are not written yet."""
        return list(self._unsettled.values())

    def put(self, settlement: Settlement) -> None:
        """Leave an attempt to be settled together with others."""
        self._unsettled[settlement.id, settlement.right.token] = settlement
        self._waiting.put_nowait(settlement)

    async def run(self) -> None:
        """Gather attempts that were left here and settle them, until cancelled."""
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < BATCH and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            try:
                await self.settle(batch)
            except Exception as error:  # noqa: BLE001  # the leases run out and are swept; the loop lives on
                self._seldom.event("attempt lost", error=describe(error))
            # Also what could not be settled: its lease is left to run out, and renewing it would only delay that.
            finally:
                self._forget(batch)
                for settlement in batch:
                    self._unsettled.pop((settlement.id, settlement.right.token), None)
                    self._waiting.task_done()

    async def finish(self, seconds: float) -> None:
        """Wait until everything that was left here is settled."""
        try:
            async with asyncio.timeout(seconds):
                await self._waiting.join()
        except TimeoutError:
            self._seldom.event("stopped unsettled", waiting=self._waiting.qsize())

    async def settle(self, batch: list[Settlement]) -> None:
        """Settle, trying again while the store is away; a lost reply is cleared up by reading back."""
        # After that the leases are certainly lost, and what was done is done again by other workers.
        until = self._monotonic() + self._lease_seconds
        while True:
            try:
                settled = await self._executor.write(self._items.settle, batch)
                if not settled.must_wait:
                    break
                # Another process has to write the stretch before ours. Nothing tells us when it has.
                await asyncio.sleep(TURN_SECONDS)
            except StoreUnavailable as error:
                self._seldom.event("settling failed", error=str(error), waiting=len(batch))
                if self._monotonic() > until:
                    return
                await asyncio.sleep(AGAIN_SECONDS)
                batch = await self._regained(batch)
                if not batch:
                    return
            except Exception as error:  # one item must not fail its batch
                if isinstance(batch[0].right, Reserved):
                    raise  # the worker gives the reservation back, and each item gets its own attempt
                if len(batch) > 1:
                    # Halving finds the one that cannot be written in a few transactions; all others are settled on the
                    # way.
                    await self.settle(batch[: len(batch) // 2])
                    await self.settle(batch[len(batch) // 2 :])
                    return
                if batch[0].cause == UNWRITABLE:
                    # Not even the dead letter can be written: the lease runs out, and the third loss makes one without
                    # this text.
                    self._seldom.event("outcome lost", item=batch[0].id, error=describe(error))
                    return
                batch = [_unwritable(batch[0], error)]
        self._tell(batch, settled)

    def _tell(self, batch: list[Settlement], settled: Settled) -> None:
        """Count what was closed, and wake the loops that go on with it."""
        if isinstance(batch[0].right, Reserved):
            # Stale here means that an earlier stretch brought the same key, or that this one was merged meanwhile: the
            # finding is an item already. There was no lease to lose, so it is not counted as a stale attempt.
            batch = [settlement for settlement in batch if settlement.id in settled.done]
            if settled.stale:
                event("run in vain", items=len(settled.stale))
        self._report(batch, settled.stale)
        if log.isEnabledFor(logging.DEBUG):
            _tell_steps([settlement for settlement in batch if settlement.id in settled.done])
        if settled.merged.read:
            tell_merged(batch[0].pipeline if batch else "", settled.merged)
        if settled.born or settled.misplaced or settled.merged.read > len(settled.done):
            self._waker.wake_all()
        for lane in dict.fromkeys(s.lane for s in batch if s.lane is not None and s.delay_ms == 0):
            self._waker.wake(lane)

    async def _regained(self, batch: list[Settlement]) -> list[Settlement]:
        """Return what is still to be settled, and take its leases up again if they ran out while the store was away."""
        try:
            closed = await self._executor.read(self._items.were_settled, [(s.id, s.right.token) for s in batch])
            if done := [s for s in batch if s.id in closed]:
                # The lost reply held how many children were new. Take all of them: the number only decides whether to
                # wake loops.
                self._tell(done, Settled(frozenset(closed), frozenset(), sum(len(s.children) for s in done)))
            batch = [s for s in batch if s.id not in closed]
            await self._executor.write(self._items.regain, [(s.id, s.right.token) for s in batch], self._grant_seconds)
        except StoreUnavailable:
            pass  # the next try fails as well, and is followed by another
        return batch


def _tell_steps(batch: list[Settlement]) -> None:
    """Log every step of every item: for debugging, since that is a line for each of them."""
    for s in batch:
        for step in s.steps:
            event(
                "step taken",
                level=logging.DEBUG,
                pipeline=s.pipeline,
                item=f"{s.kind}:{s.key}",
                transition=step.transition,
                state=step.to_state,
                note=step.note,
                refusal=step.refusal,
                error=s.error,
            )


def _unwritable(settlement: Settlement, error: Exception) -> Settlement:
    """Bury an item whose outcome the store refuses to write, without any of its effects."""
    event("outcome refused", level=logging.ERROR, item=settlement.id, pipeline=settlement.pipeline, error=str(error))
    return msgspec.structs.replace(
        settlement,
        state=settlement.state_before,
        standing="dead",
        lane=None,
        ended="dead",
        delay_ms=None,
        due_at=None,
        error=f"the store refused the outcome: {describe(error)}",
        cause=UNWRITABLE,
        body=None,
        accepts=False,
        presents=False,
        shown=None,
        links=None,
        children=(),
        steps=(),
    )
