"""One circuit for all readers: while the database is away each fails at once, and one question tells that it is back.

Without it every request waited for its own connection to give up, ten seconds long, and took a thread with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tidings.model.errors import StoreReadOnly, StoreUnavailable
from tidings.store.db.database import Database, read_clock
from tidings.store.db.executor import StoreExecutor
from tidings.store.db.threads import Threads
from tidings.watch.logs import event

T = TypeVar("T")
LOOK_SECONDS = 0.5
"""A read that takes longer is no reason for an alarm; the database is asked something trivial beside it."""
PROBE_SECONDS = 0.4
"""How long that may take: both together are less than a second."""
STARVED_SECONDS = 0.3
"""If our own loop woke up so late, this process is short of time, and the silence says nothing about the database."""


class ReaderCircuit:
    """Reads of a server; writes go through unchanged, since their outcome must be known."""

    def __init__(self, executor: StoreExecutor, database: Database) -> None:
        self._executor = executor
        self._database = database
        self._threads = Threads(1, "store-probe")
        self._probing: asyncio.Future[int] | None = None
        self._away: str | None = None
        self._away_since = 0.0
        self._return: asyncio.Task[None] | None = None

    async def write(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that writes; return once it is durable."""
        return await self._executor.write(call, *args, **kwargs)

    async def read(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that only reads; fail within a second where the database does not answer."""
        if self._away is not None:
            raise StoreUnavailable(f"away for {time.monotonic() - self._away_since:.0f} s: {self._away}")
        reading = asyncio.ensure_future(self._executor.read(call, *args, **kwargs))
        try:
            while not await _is_done(reading, LOOK_SECONDS):
                if not await self._answers():
                    self._open("it does not answer")
                    raise StoreUnavailable("the database does not answer")
            return reading.result()
        except StoreReadOnly:
            raise
        except StoreUnavailable as error:
            self._open(str(error))
            raise
        finally:
            reading.cancel()

    def close(self) -> None:
        """Ask no more."""
        if self._return is not None:
            self._return.cancel()
        self._threads.close(0)

    async def _answers(self) -> bool:
        """Ask something trivial; readers that wait share one question."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.wrap_future(self._threads.submit(lambda: read_clock(self._database)))
        probing = self._probing
        started = time.monotonic()
        is_done = await _is_done(probing, PROBE_SECONDS)
        if not is_done and time.monotonic() - started > PROBE_SECONDS + STARVED_SECONDS:
            return True
        return is_done and not probing.cancelled() and probing.exception() is None

    def _open(self, reason: str) -> None:
        if self._away is None:
            self._away, self._away_since = reason, time.monotonic()
            event("readers wait for the database", error=reason)
            self._return = asyncio.ensure_future(self._wait_for_return())

    async def _wait_for_return(self) -> None:
        while not await self._answers():  # noqa: ASYNC110  # the fact is on another machine
            await asyncio.sleep(LOOK_SECONDS)
        event("readers go on", away_seconds=round(time.monotonic() - self._away_since, 1))
        self._away = None


async def _is_done(future: asyncio.Future[Any], seconds: float) -> bool:
    await asyncio.wait([future], timeout=seconds)
    return future.done()
