"""Threads for store calls that never keep a process alive: one that waits for a dead server must not delay the end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Threads:
    """Like the standard library's pool, whose threads the interpreter waits for without limit."""

    def __init__(self, count: int, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name=f"{name}-{n}", daemon=True) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Run a call when a thread is free; one cancelled before is never run."""
        future: Future[T] = Future()
        self._calls.put((future, call))
        return future

    def close(self, seconds: float) -> None:
        """Finish what was submitted, for so long at most."""
        until = time.monotonic() + seconds
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while (work := self._calls.get()) is not None:
            future, call = work
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001  # the caller gets it
                future.set_exception(error)
            del work, future, call  # nothing of a call may live on while the thread waits for the next
