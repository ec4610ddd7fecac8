"""Connections of one process to PostgreSQL, kept open between calls.

A connection is made by the thread that needs it: a refusal is known at once and by its reason, and the first call
after an outage succeeds. (A pool that connects in the background waits longer after each failure, up to minutes.)
"""

from __future__ import annotations

import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from tidings.model.errors import StoreUnavailable
from tidings.store.db.bound_connection import BoundConnection
from tidings.store.db.conninfo import reason

WAIT_SECONDS = 10.0
IDLE_SECONDS_MAX = 600.0
AGE_SECONDS_MAX = 3600.0
AGAIN_SECONDS = 1.0
"""After a failure to connect, no other thread tries for so long: a server that comes up is not met by a crowd."""
RECENT_SECONDS = 5.0
"""A failure that is older says nothing about now: no thread has tried since."""


class _Idle(NamedTuple):
    connection: BoundConnection
    born: float
    since: float


class _Failure(NamedTuple):
    error: psycopg.OperationalError
    at: float
    since: float


class Pool:
    """At most `size` connections; the one used last is used first."""

    def __init__(self, connect: Callable[[], BoundConnection], size: int, on_broken: Callable[[], None]) -> None:
        self._connect = connect
        self._on_broken = on_broken
        self._size = size
        self._places = threading.BoundedSemaphore(size)
        self._idle: deque[_Idle] = deque()
        self._lock = threading.Lock()
        self._failure: _Failure | None = None
        self._is_closed = False

    @contextmanager
    def connection(self) -> Iterator[BoundConnection]:
        """Lend a connection; one that comes back broken is dropped, and others are told: idle ones share its fate."""
        if not self._places.acquire(timeout=WAIT_SECONDS):
            raise StoreUnavailable(f"all {self._size} connections to PostgreSQL are busy for {WAIT_SECONDS:.0f} s")
        try:
            connection, born = self._take()
            try:
                yield connection
            finally:
                self._give(connection, born)
        finally:
            self._places.release()

    def unreachable_for(self) -> tuple[float, str] | None:
        """Return for how many seconds no connection could be made, and why; None where all is well."""
        now, failure = time.monotonic(), self._failure
        if failure is None or now - failure.at > RECENT_SECONDS:
            return None
        return now - failure.since, reason(failure.error)

    def drop_idle(self) -> None:
        """Close the connections that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, deque()
        for each in idle:
            each.connection.close()

    def close(self) -> None:
        """Lend no more, and close what is not in use; the rest is closed when it comes back."""
        self._is_closed = True
        self.drop_idle()

    def _take(self) -> tuple[BoundConnection, float]:
        while (idle := self._next_idle()) is not None:
            if _is_sound(idle):
                return idle.connection, idle.born
            idle.connection.close()
        return self._connected(), time.monotonic()

    def _next_idle(self) -> _Idle | None:
        if self._is_closed:
            raise StoreUnavailable("the database is being closed")
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _connected(self) -> BoundConnection:
        last = self._failure
        if last is not None and time.monotonic() - last.at < AGAIN_SECONDS:
            # Several threads raise this one exception, and each raise would lengthen its traceback.
            raise last.error.with_traceback(None)
        try:
            connection = self._connect()
        except psycopg.OperationalError as error:
            now = time.monotonic()
            self._failure = _Failure(error, now, now if last is None else last.since)
            raise
        self._failure = None
        return connection

    def _give(self, connection: BoundConnection, born: float) -> None:
        status = connection.pgconn.transaction_status
        if status == TransactionStatus.UNKNOWN:
            self._on_broken()
        if status != TransactionStatus.IDLE or self._is_closed:
            connection.close()
            return
        with self._lock:
            self._idle.append(_Idle(connection, born, time.monotonic()))
        if self._is_closed:
            self.drop_idle()


def _is_sound(idle: _Idle) -> bool:
    """Look, without asking the server, whether it or the kernel has closed a connection meanwhile."""
    now = time.monotonic()
    if idle.connection.closed or now - idle.since > IDLE_SECONDS_MAX or now - idle.born > AGE_SECONDS_MAX:
        return False
    # Nothing was asked, so whatever can be read is the end of the connection, or the server's word that it comes.
    poll = select.poll()
    poll.register(idle.connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)
