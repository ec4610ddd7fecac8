"""Keeps calls apart: so many a minute, and none while we are asked to wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from tidings.model.errors import SlowDown

WAIT_SECONDS_MAX: Final = 30.0


class Pace:
    """Hands out evenly spaced starting times; a wait longer than half a minute is the queue's business, not ours."""

    def __init__(
        self,
        per_minute: float,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._seconds_apart = 60.0 / per_minute
        self._now = now
        self._sleep = sleep
        self._next = 0.0

    async def wait(self) -> None:
        """Wait for the next starting time, or raise SlowDown when it is far away."""
        now = self._now()
        start = max(now, self._next)
        if start - now > WAIT_SECONDS_MAX:
            raise SlowDown("the AI endpoint is asked as often as it may be", retry_after_seconds=start - now)
        self._next = start + self._seconds_apart
        if start > now:
            await self._sleep(start - now)

    def hold(self, seconds: float) -> None:
        """Start nothing for a while: somebody asked us to slow down."""
        self._next = max(self._next, self._now() + seconds)
