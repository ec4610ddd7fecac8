"""The merger: turns what was found into items, and runs the pure beginning of their lives on the way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor as Threads

from tidings.model.contracts import Executor, Intake
from tidings.model.errors import StoreUnavailable
from tidings.model.settlement import Ahead, Merged, Settlement
from tidings.process.runner import Runner, describe
from tidings.process.waker import Waker
from tidings.watch.logs import Seldom, event

MERGE = "merge"
POLL_SECONDS = 1.0
BATCH = 500
RUN_SECONDS = 5.0
"""What of a batch is not run by then is born unrun, before the right to it is over."""


class Merger:
    """One process's merging of all pipelines, in turns."""

    def __init__(
        self,
        *,
        intake: Intake,
        runner: Runner,
        executor: Executor,
        threads: Threads,
        waker: Waker,
        active: Callable[[], Awaitable[Sequence[str]]],
        report: Callable[[list[Settlement], int], None],
    ) -> None:
        self._intake = intake
        self._runner = runner
        self._executor = executor
        self._threads = threads
        self._waker = waker
        self._active = active
        self._report = report
        self._ran: dict[str, tuple[Ahead, list[Settlement]]] = {}
        """What was run ahead and is not written yet: the next turn does that, in one commit with the next batch."""
        self._seldom = Seldom()
        self._turns = 0

    @property
    def is_busy(self) -> bool:
        """Tell whether anything is under way."""
        return bool(self._turns or self._ran)

    async def run(self, stop: asyncio.Event) -> None:
        """Merge until told to stop; `give_back` then writes what is still to be written."""
        while not stop.is_set():
            merged = 0
            try:
                active = await self._active()
                for name in dict.fromkeys([*active, *self._ran]):
                    merged += await self._turn(name, BATCH if name in active and not stop.is_set() else 0)
            except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
                self._seldom.event("merging failed", error=describe(error))
                await asyncio.sleep(POLL_SECONDS)
            if not merged and not self._ran and not stop.is_set():
                await self._waker.wait(MERGE, POLL_SECONDS)

    async def give_back(self) -> None:
        """Write what was run ahead; a batch whose run was cut off is born unrun."""
        for name in tuple(self._ran):
            try:
                await self._turn(name, 0)
            except Exception as error:  # noqa: BLE001  # the right runs out, and whoever comes next merges the batch
                self._seldom.event("merging failed", error=describe(error))

    async def _turn(self, name: str, limit: int) -> int:
        """Write what was run ahead and take the next batch; run what of it can be."""
        self._turns += 1
        try:
            ahead, settlements = self._ran.get(name, (None, []))
            try:
                merged, taken = await self._executor.write(self._intake.merge_ahead, name, ahead, settlements, limit)
            except StoreUnavailable:
                raise  # once it is back, the same is tried again; if it was written after all, the token says so
            except Exception as error:
                if ahead is None:
                    raise
                # One outcome that cannot be written must not hold up the others: each gets an attempt of its own.
                self._seldom.event("running ahead failed", pipeline=name, error=describe(error))
                settlements = []
                merged, taken = await self._executor.write(self._intake.merge_ahead, name, ahead, settlements, limit)
            self._ran.pop(name, None)
            self._tell(name, merged, ahead, settlements)
            if taken is not None:
                self._ran[name] = (taken, [])
                loop = asyncio.get_running_loop()
                self._ran[name] = (taken, await loop.run_in_executor(self._threads, self._run, taken))
            return merged.read + (taken is not None)
        finally:
            self._turns -= 1

    def _run(self, ahead: Ahead) -> list[Settlement]:
        until = time.monotonic() + RUN_SECONDS
        settlements: list[Settlement] = []
        for lease in ahead.leases:
            if time.monotonic() > until:
                break
            settlement = self._runner.run_ahead(lease, RUN_SECONDS)
            if settlement is not None:
                settlements.append(settlement)
        return settlements

    def _tell(self, name: str, merged: Merged, ahead: Ahead | None, settlements: list[Settlement]) -> None:
        if merged.stale:
            event("run ahead in vain", pipeline=name, stale=merged.stale)
        if not merged.read:
            return
        event(
            "merged",
            pipeline=name,
            merged=merged.read,
            born=merged.born,
            changed=merged.changed,
            unchanged=merged.unchanged,
            checkpoint=merged.checkpoint,
        )
        written = [s for s in settlements if s.id]
        if written and ahead is not None:
            self._report(written, ahead.leases[0].granted_at)
        if merged.read > len(written) or any(s.lane is not None or s.children for s in written):
            self._waker.wake_all()
