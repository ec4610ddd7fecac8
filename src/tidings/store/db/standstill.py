"""Notices that PostgreSQL does not answer, finds out why, says so, and ends waits that cannot succeed.

A lock, a standby that is away, and a dead network all look alike from a waiting connection. The server knows which it
is, so a second connection asks it about the first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import psycopg

from tidings.store.db.bound_connection import BoundConnection
from tidings.store.db.statements import load
from tidings.watch.logs import Seldom

ASK_SECONDS = 3.0
"""After so much silence the server is asked, through another connection, what the silent one waits for."""
CUT_SECONDS = 6.0
"""A connection is closed after so much silence if the server does not say that it works for it: then the server is out
of reach, never got the statement, or its answer got lost. The server's own limit for a statement is 5 s; TCP reports a
dead host after 8 s."""
BUSY_SECONDS_MAX = 60.0
"""No statement may take longer, whatever the server does; only a COMMIT that waits for a standby may."""
ASK_AGAIN_SECONDS = 2.0
TELL_SECONDS = 5.0
RECENT_SECONDS = 5.0
"""An older failure says nothing about now: nothing was tried since."""
ASKING_SECONDS = 2

Cause = Literal["the socket", "a lock", "an absent synchronous standby", "the server's work"]


class _Activity(NamedTuple):
    pid: int
    state: str
    wait_event_type: str | None
    wait_event: str | None


class _Answer(NamedTuple):
    at: float
    causes: dict[int, Cause]


class Progress:
    """Since when one kind of call (reading, writing) has not succeeded although some are waiting."""

    def __init__(self) -> None:
        self._starts: dict[int, float] = {}
        self._failing_since: float | None = None
        self._failed = float("-inf")
        self._succeeded = float("-inf")
        self.is_locked = False
        """The last failure was another writer's lock."""

    @contextmanager
    def call(self) -> Iterator[None]:
        """Follow one call to its end."""
        thread, start = threading.get_ident(), time.monotonic()
        self._starts[thread] = start
        try:
            yield
        except psycopg.OperationalError as error:
            self._failing_since = min(start, self._failing_since or start)
            self._failed = time.monotonic()
            self.is_locked = isinstance(error, psycopg.errors.LockNotAvailable)
            raise
        else:
            self._failing_since = None
            self._succeeded = time.monotonic()
        finally:
            del self._starts[thread]

    def stalled_seconds(self) -> float:
        """Return for how long nothing has succeeded; 0 where no call waits."""
        now, starts, failing = time.monotonic(), list(self._starts.values()), self._failing_since
        if failing is not None and (starts or now - self._failed < RECENT_SECONDS):
            starts.append(failing)
        return now - max(min(starts), self._succeeded) if starts else 0.0


class Standstill:
    """Judges the waits of one process's connections."""

    def __init__(self, connect: Callable[..., BoundConnection]) -> None:
        self._connect = connect
        self._asking = threading.Lock()
        self._answers: dict[tuple[str, int], _Answer] = {}
        self._last: tuple[float, Cause] = (float("-inf"), "the socket")
        self._seldom = Seldom(TELL_SECONDS)
        self._is_closed = False
        self.reading = Progress()
        self.writing = Progress()

    def close(self) -> None:
        """End every wait at its next tick."""
        self._is_closed = True

    def describe(self) -> str | None:
        """Say what has stopped for how long, and what it waits for; None where calls succeed."""
        for progress, missing in ((self.writing, "commit"), (self.reading, "answer")):
            if (seconds := progress.stalled_seconds()) > ASK_SECONDS:
                at, cause = self._last
                if time.monotonic() - at > seconds:
                    cause = "a lock" if progress.is_locked else "the socket"
                return f"no {missing} for {seconds:.0f} s, waiting for {cause}"
        return None

    def judge(self, connection: BoundConnection, silent_seconds: float) -> None:
        """Raise where waiting on cannot help. A COMMIT may have happened all the same: callers read back."""
        if self._is_closed:
            raise connection.cut("the database is being closed")
        if silent_seconds < ASK_SECONDS or (cause := self._cause(connection)) is None:
            return
        self._last = (time.monotonic(), cause)
        self._seldom.event("no answer from PostgreSQL", seconds=round(silent_seconds), waiting_for=cause)
        # A COMMIT that waits for its standby is not cut: its process on the server would go on waiting without us, and
        # every retry would add another.
        if connection.is_unlimited or cause == "an absent synchronous standby":
            return
        if silent_seconds > (CUT_SECONDS if cause == "the socket" else BUSY_SECONDS_MAX):
            raise connection.cut(f"no answer for {silent_seconds:.0f} s; waited for {cause}")

    def _cause(self, connection: BoundConnection) -> Cause | None:
        """Return what a connection waits for ("the socket" if the server cannot tell); None while a thread asks."""
        server = (connection.info.hostaddr or connection.info.host, connection.info.port)
        known = self._answers.get(server)
        if known is None or time.monotonic() - known.at > ASK_AGAIN_SECONDS:
            if not self._asking.acquire(blocking=False):
                return None if known is None else known.causes.get(connection.info.backend_pid, "the socket")
            try:
                causes = self._ask(connection)
                known = self._answers[server] = _Answer(time.monotonic(), causes)
            finally:
                self._asking.release()
        return known.causes.get(connection.info.backend_pid, "the socket")

    def _ask(self, stuck: BoundConnection) -> dict[int, Cause]:
        # The same server, whether it still takes writes or not.
        place = {"host": stuck.info.host, "hostaddr": stuck.info.hostaddr, "port": stuck.info.port}
        try:
            with self._connect(
                **{k: v for k, v in place.items() if v}, connect_timeout=ASKING_SECONDS, target_session_attrs="any"
            ) as connection:
                connection.judge = _give_up
                rows = connection.execute(load("postgres")["activity"].text).fetchall()
        except psycopg.Error:
            return {}
        return {row.pid: _cause_of(row) for row in map(_Activity._make, rows) if _is_at_work(row)}


def _is_at_work(row: _Activity) -> bool:
    """A connection that waits for its client never got our statement, or its answer got lost."""
    return row.state == "active" and row.wait_event_type != "Client"


def _cause_of(row: _Activity) -> Cause:
    if row.wait_event == "SyncRep":
        return "an absent synchronous standby"
    return "a lock" if row.wait_event_type == "Lock" else "the server's work"


def _give_up(connection: BoundConnection, silent_seconds: float) -> None:
    if silent_seconds > ASKING_SECONDS:
        raise connection.cut("no answer")
