"""The sweeper: returns expired leases continuously, tidies now and then. A loop, not an item."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tidings.model.contracts import Executor, Items
from tidings.model.errors import StoreUnavailable
from tidings.model.settlement import Swept
from tidings.process.waker import Waker
from tidings.watch.logs import Seldom, event
from tidings.watch.metrics import Metrics

SWEEP_SECONDS = 5.0
TIDY_SECONDS = 60.0
BATCH = 500


class Sweeper:
    """Any number may run; together they do what one would."""

    def __init__(
        self,
        *,
        items: Items,
        executor: Executor,
        tidy: Callable[[], dict[str, int]],
        waker: Waker,
        metrics: Metrics | None = None,
        sweep_seconds: float = SWEEP_SECONDS,
        tidy_seconds: float = TIDY_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._items = items
        self._executor = executor
        self._tidy = tidy
        self._waker = waker
        self._metrics = metrics
        self._sweep_seconds = sweep_seconds
        self._tidy_seconds = tidy_seconds
        self._monotonic = monotonic
        self._seldom = Seldom()

    async def run(self, stop: asyncio.Event) -> None:
        """Sweep and tidy until `stop` is set."""
        next_tidy = self._monotonic() + min(10.0, self._tidy_seconds)
        while not stop.is_set():
            try:
                await self.sweep()
                if self._monotonic() >= next_tidy:
                    await self.tidy()
                    next_tidy = self._monotonic() + self._tidy_seconds
            except StoreUnavailable as error:
                self._seldom.event("store unavailable", error=str(error))
            try:
                async with asyncio.timeout(self._sweep_seconds):
                    await stop.wait()
            except TimeoutError:
                pass

    async def sweep(self) -> Swept:
        """Return every expired lease, page by page to the end."""
        total = Swept()
        while True:
            swept = await self._executor.write(self._items.sweep, BATCH)
            total = Swept(
                total.expired + swept.expired, total.poisoned + swept.poisoned, total.ambiguous + swept.ambiguous
            )
            if swept.expired < BATCH:
                break
        if total.expired:
            event("swept", expired=total.expired, dead=total.poisoned, ambiguous=total.ambiguous)
            self._waker.wake_all()
            if self._metrics is not None:
                self._metrics.expired.inc(total.expired)
                self._metrics.deliveries.labels("any", "ambiguous").inc(total.ambiguous)
        return total

    async def tidy(self) -> dict[str, int]:
        """Remove what has had its time, and find whom everybody else has missed."""
        tidied = await self._executor.write(self._tidy)
        if woken := await self._executor.write(self._items.wake_missed):
            event("woken", items=woken)
            self._waker.wake_all()
        if tidied:
            event("tidied", **{what.replace(" ", "_").replace(":", "_"): count for what, count in tidied.items()})
        return tidied
