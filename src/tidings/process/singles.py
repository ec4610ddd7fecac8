"""Singles: what a worker runs one by one, because its steps wait for other servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tidings.model.contracts import Executor, Items, Kit
from tidings.model.item import Lease
from tidings.model.settlement import Settlement
from tidings.process.holder import Holder
from tidings.process.lanes import Places
from tidings.process.runner import Runner
from tidings.process.settler import Settler
from tidings.process.shares import Shares
from tidings.process.tally import Tally
from tidings.process.waker import Waker


@dataclass(frozen=True, slots=True, kw_only=True)
class Singles:
    """One process's attempts that may wait. How many run at once is up to the lane and to the pipeline's share."""

    items: Items
    runner: Runner
    kit: Kit
    executor: Executor
    settler: Settler
    holder: Holder
    tally: Tally
    shares: Shares
    waker: Waker
    lease_seconds: float
    monotonic: Callable[[], float] = time.monotonic

    async def run(self, lease: Lease, lane: str, places: Places) -> None:
        """Make an attempt at one item, put its end among what is to be settled, and free its place."""
        started = self.monotonic()
        try:
            settlement = await self._settlement(lease)
            self.tally.observe(settlement, self.monotonic() - started)
            self.settler.put(settlement)
        except asyncio.CancelledError:
            raise  # the drain gives the lease back
        except BaseException:
            # Nothing will be settled, so the lease is no longer renewed: it runs out, which is counted.
            self.holder.forget([lease])
            raise
        finally:
            places.release()
            self.shares.end(lease.pipeline, lane)
            if self.shares.of(lease.pipeline, lane).concurrency is not None:
                # The lane may be asleep although it has places: this pipeline had none.
                self.waker.wake(lane)

    async def _settlement(self, lease: Lease) -> Settlement:
        attempt = self.runner.begin(lease, self.lease_seconds)
        if isinstance(attempt, Settlement):
            return attempt
        self.holder.begin(lease, attempt.work)
        prefetch = partial(self.executor.read, self.items.prefetch, lease.pipeline)
        return await self.runner.run_waiting(attempt, self.kit, self.lease_seconds, prefetch)
