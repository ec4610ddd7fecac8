"""SQLite through apsw: one writer, group commit, a reading connection for each thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import apsw

from tidings.model.clock import Clock, SystemClock
from tidings.model.errors import Misconfigured, StoreReadOnly, StoreUnavailable
from tidings.store.db import statements
from tidings.store.db.database import PATIENCE_SECONDS, Durability, Tx
from tidings.store.db.lock_wait import LockWait
from tidings.store.db.sqlite_tx import SqliteTx
from tidings.store.db.wal import WalCopier

OLDEST_SAFE = (3, 51, 3)
"""Older ones carry the WAL-reset bug, which can corrupt the file."""
WRITER_CACHE_KIB, READER_CACHE_KIB = 32_768, 4_096
"""How many pages a connection keeps. There is one writer and a reader for every thread; what a reader does not find
again the operating system still has in memory, once for all."""
_CLOCK = SystemClock()


class SqliteDatabase:
    """One file. Writers of this process take turns; readers never wait for them."""

    dialect: Literal["sqlite"] = "sqlite"
    has_one_writer = True
    carries_hints = False

    def __init__(
        self,
        path: str,
        *,
        durability: Durability = "power-safe",
        clock: Clock = _CLOCK,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < OLDEST_SAFE:
            raise Misconfigured(f"SQLite {apsw.sqlite_lib_version()} can corrupt its log; install apsw 3.51.3 or newer")
        self.path = path
        self._clock = clock
        self._synchronous = "FULL" if durability == "power-safe" else "NORMAL"
        self._offset_ms = int(os.environ.get("TIDINGS_CLOCK_OFFSET_MS", "0"))
        self._write_lock = threading.RLock()
        self._depth = 0
        self._writing = 0
        self._local = threading.local()
        self._opened: list[apsw.Connection] = []
        self._pid = os.getpid()
        self._lock_wait = LockWait(path, patience_seconds)
        self._asking = threading.Lock()
        self._hints: apsw.Connection | None = None
        with translated(path):
            self._writer = self._open(WRITER_CACHE_KIB)
            self._copier = WalCopier(self._open, self._lock_wait.tick)
            self._writer.set_wal_hook(self._copier.after_commit)
            self._writer_tx = SqliteTx(self._writer, self._now_ms)

    def _open(self, cache_kib: int = READER_CACHE_KIB) -> apsw.Connection:
        if self._pid != os.getpid():
            raise StoreUnavailable("a SQLite connection must not cross a fork; open the database in the new process")
        # Every statement has a few texts, one for each width of a batch. With the default of 100 they push each other
        # out.
        connection = apsw.Connection(self.path, statementcachesize=300)
        connection.set_busy_handler(self._lock_wait.tick)
        connection.execute("PRAGMA page_size = 8192")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        # A long read keeps the log from being used again, so it grows. Afterwards it is cut back to 64 MiB.
        connection.execute("PRAGMA journal_size_limit = 67108864")
        # Deterministic lets SQLite ask once a statement; within one, time stands still.
        connection.create_scalar_function("tidings_now", self._now_ms, 0, deterministic=True)
        self._opened.append(connection)
        return connection

    def _now_ms(self, *_: Any) -> int:
        return self._clock.now_ms() + self._offset_ms

    @property
    def file(self) -> Path:
        """Where the database lies."""
        return Path(self.path)

    def migrations(self) -> list[statements.Migration]:
        """Return the schema's migrations for SQLite, in order."""
        return statements.migrations("sqlite")

    def now_ms(self) -> int:
        """Return the clock, which is this machine's."""
        return self._now_ms()

    def move_clock(self, offset_ms: int) -> None:
        """Set how far the clock is moved."""
        self._offset_ms = offset_ms

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Open a writing transaction, or join the one this thread is in by a savepoint."""
        # The lock is reentrant: a call inside a transaction joins it by a savepoint.
        with self._write_lock, translated(self.path):
            opening, closing, undoing = _BEGIN if self._depth == 0 else _JOIN
            if self._depth:
                self._refuse_undone()
            self._writer.execute(opening)
            self._lock_wait.got()
            self._depth += 1
            self._writing = threading.get_ident()
            try:
                try:
                    yield self._writer_tx
                finally:
                    self._depth -= 1
                self._refuse_undone()
                self._writer.execute(closing)
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute(undoing)
                raise

    def _refuse_undone(self) -> None:
        """A full disk makes SQLite undo the whole transaction by itself: nothing more may be written as if in it."""
        if not self._writer.in_transaction:
            raise StoreUnavailable(f"{Path(self.path).name} undid the transaction; is the disk full?")

    @contextmanager
    def reading(self) -> Iterator[Tx]:
        """Open one snapshot on this thread's own connection; inside a writing transaction, look through that."""
        if self._depth and self._writing == threading.get_ident():
            yield self._writer_tx
            return
        connection = getattr(self._local, "connection", None)
        with translated(self.path):
            if connection is None:
                connection = self._local.connection = self._open()
                self._local.tx = SqliteTx(connection, self._now_ms)
                # A statement that writes by mistake fails here at once, instead of waiting for the writer's lock now
                # and then.
                connection.execute("PRAGMA query_only = 1")
            if connection.in_transaction:
                yield self._local.tx
                return
            connection.execute("BEGIN")
            try:
                yield self._local.tx
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")

    def lock(self, tx: Tx, name: str, *, is_shared: bool = False) -> None:
        """Do nothing: a writing transaction already excludes every other."""

    def changes(self) -> int:
        """Return a number that differs after another process has written."""
        # One connection must be asked each time: the number is its own.
        with self._asking:
            return int(next(iter(self._asker().execute("PRAGMA data_version")))[0])

    def _asker(self) -> apsw.Connection:
        if self._hints is None:
            self._hints = self._open()
        return self._hints

    def hint(self) -> None:
        """Do nothing: others notice by `changes`."""

    def wait_for_hint(self, seconds: float) -> bool:
        """Wait in vain: SQLite carries no hints."""
        time.sleep(seconds)
        return False

    def describe(self) -> str:
        """Name the file."""
        return f"SQLite {apsw.sqlite_lib_version()}, {Path(self.path).name}"

    def standstill(self) -> str | None:
        """Say since when another process keeps us from writing."""
        return self._lock_wait.stalled()

    def close(self) -> None:
        """Close every connection."""
        self._copier.close()
        for connection in self._opened:
            connection.close()
        self._opened.clear()


_BEGIN = ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
_JOIN = ("SAVEPOINT call", "RELEASE call", "ROLLBACK TO call; RELEASE call")


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn the driver's exceptions into ours, with what helps."""
    try:
        yield
    except apsw.FullError as error:
        raise StoreUnavailable(
            f"the disk that holds {_name(path)} is full; free some space and tidings goes on"
        ) from error
    except apsw.ReadOnlyError as error:
        raise StoreReadOnly(f"{_name(path)} is read-only; make it and its folder writable for this user") from error
    except apsw.CantOpenError as error:
        raise StoreUnavailable(
            f"{_name(path)} cannot be opened; does its folder exist, and may this user write there?"
        ) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreUnavailable(
            f"{_name(path)} is damaged or no database; move it away and bring back the last backup: "
            "tidings restore BACKUP"
        ) from error
    except apsw.BusyError as error:
        raise StoreUnavailable(f"{_name(path)} stayed locked by {LockWait(path).holder()}") from error
    except apsw.IOError as error:
        raise StoreUnavailable(f"reading or writing {_name(path)} failed: {error}") from error


def _name(path: str) -> str:
    return Path(path).name
