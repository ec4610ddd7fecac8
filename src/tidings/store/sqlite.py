"""SQLite through apsw: one writer, group commit, a reading connection for each thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import apsw

from tidings.model.clock import Clock, SystemClock
from tidings.model.errors import Misconfigured, StoreUnavailable
from tidings.store.database import PATIENCE_SECONDS, Batch, Durability, Row, Tx
from tidings.store.lock_wait import LockWait
from tidings.store.statements import TOGETHER_MAX, WIDTHS, load, together
from tidings.store.wal import WalCopier

OLDEST_SAFE = (3, 51, 3)
"""Older ones carry the WAL-reset bug, which can corrupt the file."""
USUAL = 1_000
"""Full batches are multiples of this; of other lengths there are too many to remember a statement for each."""
WRITER_CACHE_KIB, READER_CACHE_KIB = 32_768, 4_096
"""How many pages a connection keeps. There is one writer and a reader for every thread; what a reader does not find
again the operating system still has in memory, once for all."""
_CLOCK = SystemClock()


def prepare(name: str, rows: Sequence[Sequence[Any]], is_fresh: bool = False) -> Batch:
    """Put the values of many rows one after the other, as statements for many rows want them; the rest stay rows."""
    statement = load("sqlite")[name]
    texts = statement.fresh_wide if is_fresh else statement.wide
    if statement.is_together and len(rows) >= WIDTHS[-1]:
        text, rest = statement.fresh if is_fresh else statement.silent, len(rows) % TOGETHER_MAX
        widths = [TOGETHER_MAX] * (len(rows) >= TOGETHER_MAX) + [rest] * (rest >= WIDTHS[-1])
        texts = {width: together(text, len(statement.params), width) for width in widths}
    wide = []
    start = 0
    for width, text in texts.items():
        while len(rows) - start >= width:
            wide.append((text, tuple(chain.from_iterable(rows[start : start + width]))))
            start += width
    return Batch(name, len(rows), (wide, rows[start:]), is_fresh)


class SqliteTx:
    """A transaction on one connection."""

    dialect: Literal["sqlite"] = "sqlite"

    def __init__(self, connection: apsw.Connection, now_ms: Callable[[], int] = _CLOCK.now_ms) -> None:
        self.connection = connection
        self._now_ms = now_ms
        self._statements = load("sqlite")

    def all(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named statement and return its rows."""
        statement = self._statements[name]
        bound = [values[p] for p in statement.params]
        if statement.takes_now:
            bound.append(self._now_ms())
        return list(self.connection.execute(statement.text, bound))

    def one(self, name: str, /, **values: Any) -> Row | None:
        """Run a named statement and return its first row."""
        rows = self.all(name, **values)
        return rows[0] if rows else None

    def run(self, name: str, /, **values: Any) -> int:
        """Run a named statement and return how many rows it changed."""
        self.all(name, **values)
        return self.connection.changes()

    def many(self, name: str, /, rows: Iterable[Sequence[Any]]) -> list[Row]:
        """Run a batch statement once for each row; return all it returned, in order. Time stands still meanwhile."""
        statement = self._statements[name]
        if statement.is_silent:
            self.write(prepare(name, list(rows)))
            return []
        if statement.look_up:
            return self._look_up(statement.look_up, rows)
        if statement.takes_now:
            now = (self._now_ms(),)
            rows = [(*row, *now) for row in rows]
        return list(self.connection.executemany(statement.text, rows))

    def _look_up(self, text: str, rows: Iterable[Sequence[Any]]) -> list[Row]:
        """Ask for all keys that share the other values at once; rows are (number, what they share, key)."""
        alike: dict[Row, list[Sequence[Any]]] = {}
        for row in rows:
            alike.setdefault(tuple(row[1:-1]), []).append(row)
        return [
            (asked[at][0], *found)
            for shared, asked in alike.items()
            for at, *found in self.connection.execute(text, (*shared, apsw.carray(tuple([row[-1] for row in asked]))))
        ]

    def prepare(self, name: str, /, rows: Sequence[Sequence[Any]], *, is_fresh: bool = False) -> Batch:
        """Make rows ready."""
        return prepare(name, rows, is_fresh)

    def write(self, batch: Batch, /, **shared: Any) -> int:
        """Run a batch without what it returns, and count the rows it changed."""
        statement = self._statements[batch.name]
        tail = tuple(shared[name] for name in statement.shared)
        if statement.takes_now:
            tail += (self._now_ms(),)
        before = self.connection.total_changes()
        wide, rest = batch.values
        for text, values in wide:
            is_rare = statement.is_together and batch.count % USUAL
            self.connection.execute(text, values + tail, can_cache=not is_rare)
        if rest:
            text = statement.fresh if batch.is_fresh else statement.silent
            self.connection.executemany(text, [(*row, *tail) for row in rest])
        return self.connection.total_changes() - before

    def changes_all(self, batch: Batch, /) -> bool:
        """Run a batch if it changes a row for each; else do nothing."""
        self.connection.execute("SAVEPOINT every")
        has_changed_all = self.write(batch) == batch.count
        self.connection.execute("RELEASE every" if has_changed_all else "ROLLBACK TO every; RELEASE every")
        return has_changed_all

    def sql(self, text: str, values: Mapping[str, Any]) -> list[Row]:
        """Run composed SQL with bound values."""
        return list(self.connection.execute(text, dict(values)))


class SqliteDatabase:
    """One file. Writers of this process take turns; readers never wait for them."""

    dialect: Literal["sqlite"] = "sqlite"

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
        self._turn = threading.RLock()
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
        connection = apsw.Connection(self.path, statementcachesize=300)
        connection.set_busy_handler(self._lock_wait.tick)
        connection.execute("PRAGMA page_size = 8192")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        # Deterministic lets SQLite ask once a statement; within one, time stands still.
        connection.create_scalar_function("tidings_now", self._now_ms, 0, deterministic=True)
        self._opened.append(connection)
        return connection

    def _now_ms(self, *_: Any) -> int:
        return self._clock.now_ms() + self._offset_ms

    def prepare(self, name: str, /, rows: Sequence[Sequence[Any]], *, is_fresh: bool = False) -> Batch:
        """Make rows ready."""
        return prepare(name, rows, is_fresh)

    def now_ms(self) -> int:
        """Return the clock, which is this machine's."""
        return self._now_ms()

    def move_clock(self, offset_ms: int) -> None:
        """Set how far the clock is moved."""
        self._offset_ms = offset_ms

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Open a writing transaction, or join the one this thread is in by a savepoint."""
        with self._turn, translated(self.path):
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

    def lock(self, tx: Tx, name: str) -> None:
        """Do nothing: a writing transaction already excludes every other."""

    def changes(self) -> int:
        """Return a number that differs after anybody else has written."""
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
        raise StoreUnavailable(f"{_name(path)} is read-only; make it and its folder writable for this user") from error
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
