"""Good manners per host: few requests at a time, a pause between them, and silence when asked for it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tidings.model.errors import SlowDown

HOSTS_REMEMBERED_MAX = 10_000


class _Manners:
    """What we owe one host."""

    __slots__ = ("delay_seconds", "next_start", "places", "silent_until", "users")

    def __init__(self, concurrency: int, delay_seconds: float) -> None:
        self.places = asyncio.Semaphore(concurrency)
        self.delay_seconds = delay_seconds
        self.next_start = 0.0
        self.silent_until = 0.0
        self.users = 0


class Hosts:
    """Gives out turns. Times are monotonic seconds."""

    def __init__(
        self, *, concurrency: int, delay_seconds: float, wait_seconds_max: float, clock: Callable[[], float]
    ) -> None:
        self._concurrency = concurrency
        self._delay_seconds = delay_seconds
        self._wait_seconds_max = wait_seconds_max
        self._clock = clock
        self._manners: OrderedDict[str, _Manners] = OrderedDict()

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for a place and the pause before it; raise SlowDown rather than wait too long."""
        manners = self._manners_of(host)
        self._respect_silence(host, manners)
        manners.users += 1
        try:
            deadline = self._clock() + self._wait_seconds_max
            await self._place(host, manners)
            try:
                await self._pause(host, manners, deadline)
                yield
            finally:
                manners.places.release()
        finally:
            manners.users -= 1

    def be_silent(self, host: str, seconds: float) -> None:
        """Leave a host alone for a time, because it asked."""
        manners = self._manners_of(host)
        manners.silent_until = max(manners.silent_until, self._clock() + seconds)

    def slow_to(self, host: str, delay_seconds: float) -> None:
        """Keep at least this pause between requests, because its robots.txt asks for it."""
        manners = self._manners_of(host)
        manners.delay_seconds = max(self._delay_seconds, delay_seconds)

    async def _place(self, host: str, manners: _Manners) -> None:
        if not manners.places.locked():
            await manners.places.acquire()
            return
        try:
            async with asyncio.timeout(self._wait_seconds_max):
                await manners.places.acquire()
        except TimeoutError as error:
            raise SlowDown(f"{host} is busy with our earlier requests", retry_after_seconds=1.0) from error

    async def _pause(self, host: str, manners: _Manners, deadline: float) -> None:
        self._respect_silence(host, manners)
        now = self._clock()
        start = max(now, manners.next_start)
        if start > deadline:
            raise SlowDown(f"our polite queue for {host} is long", retry_after_seconds=start - now)
        manners.next_start = start + manners.delay_seconds
        if start > now:
            await asyncio.sleep(start - now)
            self._respect_silence(host, manners)

    def _respect_silence(self, host: str, manners: _Manners) -> None:
        left = manners.silent_until - self._clock()
        if left > 0:
            raise SlowDown(f"{host} asked us to wait another {left:.0f} s", retry_after_seconds=left)

    def _manners_of(self, host: str) -> _Manners:
        manners = self._manners.get(host)
        if manners is None:
            manners = self._manners[host] = _Manners(self._concurrency, self._delay_seconds)
            self._forget_idle()
        else:
            self._manners.move_to_end(host)
        return manners

    def _forget_idle(self) -> None:
        while len(self._manners) > HOSTS_REMEMBERED_MAX:
            oldest = next(iter(self._manners))
            if self._manners[oldest].users:
                self._manners.move_to_end(oldest)
                return
            del self._manners[oldest]
