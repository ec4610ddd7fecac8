"""Encoded answers kept in memory while the shelf they were read from has not changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tidings.model.contracts import Executor, Shelf
from tidings.model.errors import StoreUnavailable
from tidings.serve.http.replies import Encoded, stale

CHECK_SECONDS = 0.25
BYTES_MAX = 16 << 20
_ANSWERS_MAX = 20_000
Key = tuple[str, bytes]
"""Path and query string, as the request has them."""


class Freshness:
    """The version of one pipeline's shelf, read at most every 250 ms, by one request while the others wait for it."""

    __slots__ = ("_asking", "_executor", "_pipeline", "_shelf", "checked_at", "version")

    def __init__(self, executor: Executor, shelf: Shelf, pipeline: str) -> None:
        self._executor, self._shelf, self._pipeline = executor, shelf, pipeline
        self._asking: asyncio.Future[int] | None = None
        self.version = -1
        self.checked_at = float("-inf")

    def is_recent(self) -> bool:
        """Tell whether the version was checked a moment ago."""
        return time.monotonic() - self.checked_at < CHECK_SECONDS

    async def current(self) -> int:
        """Return the version, asking the shelf where the last answer is too old."""
        if self.is_recent():
            return self.version
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    async def _ask(self) -> int:
        asked_at = time.monotonic()
        self.version = await self._executor.read(self._shelf.version, self._pipeline)
        self.checked_at = asked_at
        return self.version

    def _asked(self, asking: asyncio.Future[int]) -> None:
        self._asking = None
        if not asking.cancelled():
            asking.exception()  # Mark it as retrieved: each waiting request has raised it.


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer, and the version of the shelf it tells."""

    encoded: Encoded
    freshness: Freshness
    version: int
    route: str


class HotAnswers:
    """The answers, newest last; the oldest go when there are too many."""

    def __init__(
        self,
        executor: Executor,
        shelf: Shelf,
        pipelines: list[str],
        bytes_max: int = BYTES_MAX,
        *,
        observe: Callable[[bool], None] = lambda _is_hit: None,
    ) -> None:
        self._observe = observe
        self.freshness = {name: Freshness(executor, shelf, name) for name in pipelines}
        self._kept: dict[Key, KeptAnswer] = {}
        self._bytes_max = bytes_max
        self._size_bytes = 0
        self._making: dict[Key, asyncio.Lock] = {}

    def now(self, key: Key) -> KeptAnswer | None:
        """Return an answer that may be sent without asking the store."""
        kept = self._kept.get(key)
        if kept is None or kept.version != kept.freshness.version or not kept.freshness.is_recent():
            return None
        self._observe(True)
        return kept

    async def get(self, key: Key, pipeline: str, route: str, make: Callable[[], Awaitable[Encoded]]) -> Encoded:
        """Return the kept answer, or make it; one request makes it while the others wait."""
        freshness = self.freshness[pipeline]
        kept = self._kept.get(key)
        try:
            version = await freshness.current()
        except StoreUnavailable:
            if kept is None or kept.version != freshness.version:
                raise
            return stale(kept.encoded, time.monotonic() - freshness.checked_at)
        kept = self._kept.get(key)
        if kept is not None and kept.version == version:
            self._observe(True)
            return kept.encoded
        lock = self._making.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                kept = self._kept.get(key)
                if kept is not None and kept.version == version:
                    return kept.encoded
                self._observe(False)
                encoded = await make()
                self._keep(key, KeptAnswer(encoded, freshness, version, route))
                return encoded
        finally:
            if not lock.locked():
                self._making.pop(key, None)

    def forget(self, pipeline: str) -> None:
        """Make a pipeline's answers again: something in them changed that is no card."""
        freshness = self.freshness[pipeline]
        for key in [key for key, kept in self._kept.items() if kept.freshness is freshness]:
            self._size_bytes -= self._kept.pop(key).encoded.size_bytes

    def _keep(self, key: Key, kept: KeptAnswer) -> None:
        old = self._kept.pop(key, None)
        self._size_bytes += kept.encoded.size_bytes - (old.encoded.size_bytes if old else 0)
        self._kept[key] = kept
        while self._size_bytes > self._bytes_max or len(self._kept) > _ANSWERS_MAX:
            dropped = self._kept.pop(next(iter(self._kept)))
            self._size_bytes -= dropped.encoded.size_bytes
