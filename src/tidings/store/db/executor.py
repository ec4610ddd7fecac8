"""Runs store calls of the event loop in threads. Where there is one writer, one commit serves all calls that wait.

On SQLite a commit costs a sync of the disk, and writers would wait for each other anyway: one thread takes the calls as
they come, each in a savepoint, and commits them together. PostgreSQL gets a few threads with transactions of their own.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from tidings.model.errors import StoreUnavailable
from tidings.store.db.database import Contention, Database
from tidings.store.db.threads import Threads

T = TypeVar("T")
GROUP_MAX = 64
GROUP_SECONDS = 0.05
TRIES_MAX = 5
CALL_SECONDS = 30.0
"""No caller waits longer. Whether a call that was given up has written is unknown, as with a lost reply."""
CLOSE_SECONDS = 1.5


@dataclass(slots=True)
class _Call:
    run: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class StoreExecutor:
    """Answers a write only after the COMMIT that made it durable."""

    def __init__(
        self, database: Database, *, readers: int = 4, writers: int = 4, call_seconds: float = CALL_SECONDS
    ) -> None:
        self._database = database
        self._call_seconds = call_seconds
        self.trouble: str | None = None
        """Why the last write failed; None after one that succeeded."""
        self._readers = Threads(readers, "store-read")
        self._writers: Threads | None = None
        self._waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        if database.has_one_writer:
            self._thread = threading.Thread(target=self._write_groups, name="store-write", daemon=True)
            self._thread.start()
        else:
            self._writers = Threads(writers, "store-write")

    async def write(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that writes; return once it is durable."""
        try:
            answer = await self._write_durably(call, *args, **kwargs)
        except StoreUnavailable as error:
            self.trouble = str(error)
            raise
        self.trouble = None
        return answer

    async def _write_durably(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        if self._writers is not None:
            return await self._answered(self._writers.submit(lambda: patiently(call, *args, **kwargs)))
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.put(_Call(lambda: call(*args, **kwargs), loop, future))
        return await self._in_time(future)

    async def read(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that only reads."""
        return await self._answered(self._readers.submit(lambda: call(*args, **kwargs)))

    def close(self) -> None:
        """Finish the calls that wait, then stop; calls that the database does not answer are given up."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(CLOSE_SECONDS)
        until = time.monotonic() + CLOSE_SECONDS
        for threads in (self._writers, self._readers):
            if threads is not None:
                threads.close(max(0.0, until - time.monotonic()))

    async def _answered(self, future: Future[T]) -> T:
        return await self._in_time(asyncio.wrap_future(future))

    async def _in_time(self, future: asyncio.Future[T]) -> T:
        """Wait for an answer; a call that was given up before it began is never begun."""
        try:
            async with asyncio.timeout(self._call_seconds):
                return await future
        except TimeoutError:
            if not future.cancelled():
                raise  # the call's own
            why = self._database.standstill() or "the store is overloaded"
            raise StoreUnavailable(f"no answer within {self._call_seconds:.0f} s: {why}") from None

    def _write_groups(self) -> None:
        while (first := self._waiting.get()) is not None:
            if not self._write(first):
                return

    def _write(self, first: _Call) -> bool:
        """Run a call, and those that wait or arrive meanwhile, in one transaction; False when it is time to stop."""
        group: list[_Call] = []
        answers: list[tuple[_Call, Any, BaseException | None]] = []
        call: _Call | None = first
        until = time.monotonic() + GROUP_SECONDS
        try:
            with self._database.transaction():
                while call is not None:
                    # Otherwise its caller has given up and may ask again: what was not begun is never begun.
                    if not call.future.done():
                        group.append(call)
                        answers.append(self._answer(call))
                    # A bound in calls and in time: calls arrive while others run, and the first caller waits for the
                    # commit of them all.
                    if len(group) == GROUP_MAX or time.monotonic() > until or self._waiting.empty():
                        break
                    call = self._waiting.get()
        except BaseException as error:  # noqa: BLE001  # the COMMIT failed: no call is durable
            answers = [(each, None, error) for each in group or [first]]
        for each, value, failure in answers:
            each.loop.call_soon_threadsafe(_resolve, each.future, value, failure)
        return call is not None

    def _answer(self, call: _Call) -> tuple[_Call, Any, BaseException | None]:
        """Run one call in a savepoint of its own, so that its failure undoes nothing of the other calls."""
        try:
            with self._database.transaction():
                return call, call.run(), None
        except BaseException as error:  # noqa: BLE001  # the caller gets it
            return call, None, error


def patiently(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Try a call again, a few times, where it had to give way to another writer; nothing of it was written then."""
    for _ in range(TRIES_MAX - 1):
        try:
            return call(*args, **kwargs)
        except Contention:
            continue
    return call(*args, **kwargs)


def _resolve(future: asyncio.Future[Any], value: Any, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(value)
    else:
        future.set_exception(failure)
