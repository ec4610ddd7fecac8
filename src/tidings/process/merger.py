"""The merger: turns what was found into items, and runs the pure beginning of their lives on the way."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor as Threads
from typing import Any, NamedTuple

from tidings.model.contracts import Executor, Merging
from tidings.model.errors import StoreUnavailable
from tidings.model.settlement import Ahead, Merged, Settlement
from tidings.process.runner import Runner, describe
from tidings.process.waker import Waker
from tidings.watch.logs import Seldom, event

MERGE = "merge"
POLL_SECONDS = 1.0
TURN_SECONDS = 0.002
"""How often to ask whether the batch before ours is written, where several workers run ahead."""
LEASE_SECONDS_MAX = 15.0
"""Short: while a right lasts, what comes after its batch is not written."""
RUN_SHARE = 1 / 3
"""What of a batch is not run by then is born unrun, before the right to it is over."""
GIVE_BACK_SECONDS = 2.0


class _Ran(NamedTuple):
    settlements: list[Settlement]
    birth: Any
    """The same, ready to be written."""


class _Batch(NamedTuple):
    ahead: Ahead
    running: asyncio.Future[_Ran]


_UNRUN = _Ran([], None)


class Merger:
    """One process's merging of all pipelines, in turns."""

    def __init__(
        self,
        *,
        intake: Merging,
        runner: Runner,
        executor: Executor,
        threads: Threads,
        waker: Waker,
        active: Callable[[], Awaitable[Sequence[str]]],
        report: Callable[[list[Settlement], int], None],
        batch: int,
        lease_seconds: float,
        runs_ahead: bool = True,
        poll_seconds: float = POLL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._intake = intake
        self._runner = runner
        self._executor = executor
        self._threads = threads
        self._waker = waker
        self._active = active
        self._report = report
        self._batch = batch
        self._runs_ahead = runs_ahead
        self._poll_seconds = poll_seconds
        self._monotonic = monotonic
        self._lease_seconds = min(lease_seconds, LEASE_SECONDS_MAX)
        self._ahead: dict[str, deque[_Batch]] = {}
        """What of each pipeline is being run ahead, or was and is not written yet, in the order of the log."""
        self._seldom = Seldom()
        self._turns = 0

    @property
    def is_busy(self) -> bool:
        """Tell whether anything is under way."""
        return bool(self._turns or self._ahead)

    async def run(self, stop: asyncio.Event) -> None:
        """Merge until told to stop; `give_back` then writes what is still to be written."""
        while not stop.is_set():
            merged = 0
            try:
                active = await self._active()
                for name in dict.fromkeys([*active, *self._ahead]):
                    merged += await self._turn(name, self._batch if name in active and not stop.is_set() else 0)
            except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
                self._seldom.event("merging failed", error=describe(error))
                await asyncio.sleep(self._poll_seconds)
            if merged or stop.is_set():
                continue
            if self._ahead:
                await asyncio.sleep(TURN_SECONDS)
            else:
                await self._waker.wait(MERGE, self._poll_seconds)

    async def give_back(self) -> None:
        """Write what was run ahead; a batch whose run was cut off is born unrun."""
        await asyncio.gather(*(self._give_back(name) for name in tuple(self._ahead)))

    async def _give_back(self, name: str) -> None:
        try:
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                while name in self._ahead:
                    if not await self._write(name, 0):
                        await asyncio.sleep(TURN_SECONDS)
        except Exception as error:  # noqa: BLE001  # the right runs out, and whoever comes next merges the batch
            self._seldom.event("merging failed", error=describe(error))

    async def _turn(self, name: str, limit: int) -> int:
        """Write the first batch that was run ahead, and take the next in the same commit, to be run."""
        self._turns += 1
        try:
            if not self._runs_ahead:
                merged = await self._executor.write(self._intake.merge, name, limit)
                self._tell(name, merged, None, [])
                return merged.read
            if not (batches := self._ahead.get(name)):
                return await self._take(name, limit)
            if self._has_room(batches, limit):
                await self._take(name, limit)  # it will run while the first is written
            await asyncio.wait({batches[0].running})
            return await self._write(name, limit)
        finally:
            self._turns -= 1

    def _has_room(self, batches: deque[_Batch], limit: int) -> bool:
        """Tell whether to take one more: where there seems to be more, and once for each batch that is run."""
        is_full = len(batches[-1].ahead.rows) >= limit > 0
        return is_full and len(batches) < self._intake.abreast and not batches[0].running.done()

    async def _take(self, name: str, limit: int) -> int:
        merged, taken = await self._executor.write(self._merge_ahead, name, None, None, limit)
        self._tell(name, merged, None, [])
        self._start(name, taken)
        return merged.read + (taken is not None)

    async def _write(self, name: str, limit: int) -> int:
        """Write what was run ahead, if all before it is written; else it stays for the next turn."""
        batches = self._ahead[name]
        ahead, running = batches[0]
        if not await self._executor.read(self._intake.comes_next, ahead):
            return 0
        is_run = running.done() and not running.cancelled() and running.exception() is None
        settlements, birth = running.result() if is_run else _UNRUN
        merged, taken = await self._try_to_write(ahead, birth, limit)
        if merged.stale:
            event("run ahead in vain", pipeline=name, stale=merged.stale)
        if not merged.waits:
            batches.popleft()
            if not batches:
                del self._ahead[name]
        written = [s for s in settlements if s.id not in merged.vain] if merged.ran else []
        self._tell(name, merged, ahead, written)
        self._start(name, taken)
        return merged.read + (taken is not None)

    async def _try_to_write(self, ahead: Ahead, birth: Any, limit: int) -> tuple[Merged, Ahead | None]:
        write = self._executor.write
        try:
            return await write(self._merge_ahead, ahead.pipeline, ahead, birth, limit)
        except StoreUnavailable:
            raise  # once it is back, the same is tried again; if it was written after all, the token says so
        except Exception as error:  # noqa: BLE001  # one outcome must not hold up the others: each gets its own attempt
            self._seldom.event("running ahead failed", pipeline=ahead.pipeline, error=describe(error))
            return await write(self._merge_ahead, ahead.pipeline, ahead, None, limit)

    def _merge_ahead(self, name: str, ahead: Ahead | None, birth: Any, limit: int) -> tuple[Merged, Ahead | None]:
        return self._intake.merge_ahead(name, ahead, birth, limit=limit, lease_seconds=self._lease_seconds)

    def _start(self, name: str, ahead: Ahead | None) -> None:
        if ahead is not None:
            loop = asyncio.get_running_loop()
            batch = _Batch(ahead, loop.run_in_executor(self._threads, self._run, ahead))
            self._ahead.setdefault(name, deque()).append(batch)

    def _run(self, ahead: Ahead) -> _Ran:
        seconds = self._lease_seconds * RUN_SHARE
        until = self._monotonic() + seconds
        settlements: list[Settlement] = []
        for lease in ahead.leases:
            if self._monotonic() > until:
                break
            settlement = self._runner.run_ahead(lease, seconds)
            if settlement is not None:
                settlements.append(settlement)
        return _Ran(settlements, self._intake.prepare(ahead, settlements))

    def _tell(self, name: str, merged: Merged, ahead: Ahead | None, settlements: list[Settlement]) -> None:
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
        if settlements and ahead is not None:
            self._report(settlements, ahead.granted_at)
        if merged.read > merged.ran or merged.woken or any(s.lane is not None or s.children for s in settlements):
            self._waker.wake_all()
