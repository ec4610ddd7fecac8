"""The sweeper: returns expired leases continuously, tidies now and then. A loop, not an item."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tidings.model.contracts import Executor, Items
from tidings.model.errors import StoreUnavailable
from tidings.model.settlement import Swept
from tidings.process.holder import GRANT_SECONDS
from tidings.process.waker import Waker
from tidings.watch.logs import Seldom, event
from tidings.watch.metrics import Metrics

SWEEP_SECONDS = 5.0
SILENCE_SHARE = 1 / 3
"""Of a lease's length: if the store was out of reach for so long, holders may have missed to renew."""
PATIENCE_SHARE = 1 / 2
"""Of a lease's length: how long holders get to come back before leases that ran out are taken from them."""
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
        grant_seconds: float = GRANT_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._items = items
        self._executor = executor
        self._tidy = tidy
        self._waker = waker
        self._metrics = metrics
        self._sweep_seconds = sweep_seconds
        self._tidy_seconds = tidy_seconds
        self._silence_seconds = grant_seconds * SILENCE_SHARE
        self._patience_seconds = grant_seconds * PATIENCE_SHARE
        self._monotonic = monotonic
        self._asked = float("inf")
        self._was_away = False
        self._judges_from = float("-inf")
        self._seldom = Seldom()

    async def run(self, stop: asyncio.Event) -> None:
        """Sweep and tidy until `stop` is set."""
        # Not at once: a process that just started has more urgent things to do.
        next_tidy = self._monotonic() + min(10.0, self._tidy_seconds)
        while not stop.is_set():
            try:
                await self._judge()
                if self._monotonic() >= next_tidy:
                    await self.tidy()
                    next_tidy = self._monotonic() + self._tidy_seconds
            except StoreUnavailable as error:
                self._was_away = True
                self._seldom.event("store unavailable", error=str(error))
            try:
                async with asyncio.timeout(self._sweep_seconds):
                    await stop.wait()
            except TimeoutError:
                pass

    async def _judge(self) -> None:
        """Sweep, unless the store was away until now.

        A lease that runs out means that its holder died, perhaps of the item, only if it could have been renewed. After
        an outage holders get time to take up again what they held: innocent items are not counted as poison, and what
        was done but could not be written is not done twice.
        """
        if self._was_away:
            await self._executor.write(self._items.sweep, 0)  # writes nothing, and raises while the store is away
            self._was_away, self._judges_from = False, self._monotonic() + self._patience_seconds
            event("holding back", reason="the store was away", seconds=self._patience_seconds)
        elif self._monotonic() >= self._judges_from:
            await self._sweep(self._sweep_in_time)
        else:
            await self._executor.write(self._items.sweep, 0)

    def _sweep_in_time(self, limit: int) -> Swept:
        """Sweep, unless the store let this call wait so long that holders may have missed to renew."""
        if self._monotonic() - self._asked > self._silence_seconds:
            raise StoreUnavailable("the store did not answer for a while")
        return self._items.sweep(limit)

    async def sweep(self) -> Swept:
        """Return every expired lease, page by page to the end."""
        return await self._sweep(self._items.sweep)

    async def _sweep(self, page: Callable[[int], Swept]) -> Swept:
        total = Swept()
        while True:
            self._asked = self._monotonic()
            swept = await self._executor.write(page, BATCH)
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
        """Apply retention."""
        tidied = await self._executor.write(self._tidy)
        if tidied:
            event("tidied", **{what.replace(" ", "_").replace(":", "_"): count for what, count in tidied.items()})
        return tidied
