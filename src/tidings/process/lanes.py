"""Lanes: kinds of work, each with bounds of its own, and the places in them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tidings.model.workflow import NOTIFY, PURE


@dataclass(frozen=True, slots=True)
class Lane:
    """How much of one kind of work a process does at once."""

    concurrency: int = 4
    batch: int = 100
    rate_per_minute: float | None = None
    in_order: bool = False


LANES = {
    PURE: Lane(concurrency=1, batch=1000),
    "fetch": Lane(concurrency=16),
    "ai": Lane(concurrency=4),
    NOTIFY: Lane(concurrency=1, in_order=True),
}


class Places(asyncio.Semaphore):
    """The places of a lane: in the pure lane each holds a whole batch, elsewhere one item."""

    @property
    def free(self) -> int:
        """Return how many are free."""
        return self._value

    async def take(self, stop: asyncio.Event) -> bool:
        """Wait for a free place; False where the worker is told to stop first."""
        if not self.locked():
            await self.acquire()
        else:
            # A long attempt may hold the last place: a worker that is told to stop does not wait for it here.
            taking, stopping = asyncio.create_task(self.acquire()), asyncio.create_task(stop.wait())
            await asyncio.wait({taking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not taking.done():
                taking.cancel()
                return False
        if stop.is_set():
            self.release()
            return False
        return True
