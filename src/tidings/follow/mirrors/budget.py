"""A budget of writes a day, counted before the write, so that no crash makes a write free."""

from __future__ import annotations

import math
from typing import Protocol

from tidings.model.clock import Clock, seconds_left_in_day

INDEX_SHARE = 5
"""At most a fifth of a day's writes is kept back for the id indexes."""


class DailyCounter(Protocol):
    """Where the day's writes are counted, durably: the store's ledger."""

    async def reserve(self, name: str, amount: int, limit: int) -> bool:
        """Set aside part of today's budget; False where it would not suffice."""
        ...

    async def settle(self, name: str, reserved: int, actual: int) -> None:
        """Replace a reservation by what was really spent."""
        ...

    async def count(self, name: str, amount: int) -> None:
        """Count without a limit."""
        ...


class WriteBudget:
    """What one mirror may write in a day (UTC); a limit of 0 only counts."""

    def __init__(self, counter: DailyCounter, clock: Clock, *, mirror: str, pipeline: str, limit: int) -> None:
        self._counter, self._clock, self._limit = counter, clock, limit
        # The status shows a budget with the pipeline it names, and so does the alert at 90 %.
        self._writes, self._deletes = f"mirror_writes:{mirror}:{pipeline}", f"mirror_deletes:{mirror}:{pipeline}"

    async def take_writes(self, amount: int, *, kept_back: int = 0) -> int:
        """Count up to `amount` writes as done and return how many are allowed, leaving `kept_back` for others."""
        return await self._take(self._writes, amount, kept_back)

    async def take_all(self, amount: int) -> bool:
        """Count all of these writes as done, or none of them."""
        if not self._limit:
            await self._counter.count(self._writes, amount)
            return True
        if not await self._counter.reserve(self._writes, amount, self._limit):
            return False
        await self._counter.settle(self._writes, amount, amount)
        return True

    async def take_deletes(self, amount: int) -> int:
        """Count deletes; Cloudflare counts them apart, and allows as many as writes."""
        return await self._take(self._deletes, amount, 0)

    def for_indexes(self, index_seconds: float, writes_each: int) -> int:
        """Return how many writes the id indexes may still need today: cards without a place in a list help nobody."""
        if not self._limit:
            return 0
        times = math.ceil(seconds_left_in_day(self._clock.now_ms()) / max(index_seconds, 1))
        return min(self._limit // INDEX_SHARE, times * writes_each)

    async def _take(self, name: str, amount: int, kept_back: int) -> int:
        if not self._limit:
            await self._counter.count(name, amount)
            return amount
        while amount:
            # Asking for both and spending one leaves `kept_back` for the others that ask at the same moment.
            if await self._counter.reserve(name, amount + kept_back, self._limit):
                await self._counter.settle(name, amount + kept_back, amount)
                return amount
            # Halved until it fits: the counter says only yes or no, and what is left may be taken by another process
            # meanwhile.
            amount //= 2
        return 0
