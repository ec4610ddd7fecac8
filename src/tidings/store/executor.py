"""Carries the loops' store calls off the event loop; on SQLite one commit serves all calls that wait."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from tidings.store.database import Contention, Database

T = TypeVar("T")
GROUP_MAX = 64
GROUP_SECONDS = 0.05
TRIES_MAX = 5


@dataclass(slots=True)
class _Call:
    run: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class StoreExecutor:
    """Writes are answered after the COMMIT that holds them, never before."""

    def __init__(self, database: Database, *, readers: int = 4, writers: int = 4) -> None:
        self._database = database
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="store-read")
        self._writers: ThreadPoolExecutor | None = None
        self._waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        if database.dialect == "sqlite":
            self._thread = threading.Thread(target=self._write_groups, name="store-write", daemon=True)
            self._thread.start()
        else:
            self._writers = ThreadPoolExecutor(writers, thread_name_prefix="store-write")

    async def write(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that writes; return once it is durable."""
        loop = asyncio.get_running_loop()
        if self._writers is not None:
            return await loop.run_in_executor(self._writers, lambda: patiently(call, *args, **kwargs))
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.put(_Call(lambda: call(*args, **kwargs), loop, future))
        return await future

    async def read(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that only reads."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, lambda: call(*args, **kwargs))

    def close(self) -> None:
        """Finish what waits, then stop."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
        if self._writers is not None:
            self._writers.shutdown()
        self._readers.shutdown()

    def _write_groups(self) -> None:
        while (first := self._waiting.get()) is not None:
            if not self._write(first):
                return

    def _write(self, first: _Call) -> bool:
        """Run a call, and those that wait or arrive meanwhile, in one transaction; False once told to end."""
        group: list[_Call] = []
        answers: list[tuple[_Call, Any, BaseException | None]] = []
        call: _Call | None = first
        until = time.monotonic() + GROUP_SECONDS
        try:
            with self._database.transaction():
                while call is not None:
                    group.append(call)
                    answers.append(self._answer(call))
                    if len(group) == GROUP_MAX or time.monotonic() > until or self._waiting.empty():
                        break
                    call = self._waiting.get()
        except BaseException as error:  # noqa: BLE001  # the COMMIT failed: nobody's call is durable
            answers = [(each, None, error) for each in group or [first]]
        for each, value, failure in answers:
            each.loop.call_soon_threadsafe(_resolve, each.future, value, failure)
        return call is not None

    def _answer(self, call: _Call) -> tuple[_Call, Any, BaseException | None]:
        """Run one call in a savepoint of its own, so that its failure undoes nothing of its neighbors'."""
        try:
            with self._database.transaction():
                return call, call.run(), None
        except BaseException as error:  # noqa: BLE001  # the caller gets it
            return call, None, error


def patiently(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Make a call again, a few times, while it has to give way to another writer; nothing of it was written."""
    for _ in range(TRIES_MAX - 1):
        try:
            return call(*args, **kwargs)
        except Contention:
            continue
    return call(*args, **kwargs)


def _resolve(future: asyncio.Future[Any], value: Any, failure: BaseException | None) -> None:
    if future.cancelled():
        return
    if failure is None:
        future.set_result(value)
    else:
        future.set_exception(failure)
