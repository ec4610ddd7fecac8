"""Carries the loops' store calls off the event loop; on SQLite one commit serves all calls that wait."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from tidings.store.database import Contention, Database

T = TypeVar("T")
GROUP_MAX = 64
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
            group = [first]
            ends = False
            while len(group) < GROUP_MAX:
                try:
                    call = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if call is None:
                    ends = True
                    break
                group.append(call)
            self._write(group)
            if ends:
                return

    def _write(self, group: list[_Call]) -> None:
        answers: list[tuple[_Call, Any, BaseException | None]] = []
        try:
            with self._database.transaction():
                answers.extend(self._answer(call) for call in group)
        except BaseException as error:  # noqa: BLE001  # the COMMIT failed: nobody's call is durable
            answers = [(call, None, error) for call in group]
        for call, value, failure in answers:
            call.loop.call_soon_threadsafe(_resolve, call.future, value, failure)

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
