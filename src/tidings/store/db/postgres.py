"""PostgreSQL through psycopg: a pool for writing, one for reading, batches as arrays."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import psycopg
from psycopg import sql as composing

from tidings.model.errors import Misconfigured, StoreReadOnly, StoreUnavailable, TidingsError
from tidings.store.db import statements
from tidings.store.db.bound_connection import BoundConnection
from tidings.store.db.conninfo import hosts_from, is_absent, is_passing, parameters, reason
from tidings.store.db.database import PATIENCE_SECONDS, Contention, Durability, Tx, read_clock
from tidings.store.db.pool import Pool
from tidings.store.db.postgres_tx import PostgresTx
from tidings.store.db.standstill import Progress, Standstill
from tidings.watch.logs import Seldom

HINT_SECONDS = 0.1
AGAIN_SECONDS = 0.2
COMPARE_SECONDS = 60.0
# The limits are the server's own, for statements that a client left behind when it died. Compiling (jit) takes longer
# than any of our statements runs.
_SESSION = (
    "SET statement_timeout = '5s'; SET lock_timeout = '2s'; SET idle_in_transaction_session_timeout = '10s'; "
    "SET timezone = 'UTC'; SET jit = off"
)
_BY_INDEX = (
    "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"
)
"""Tables fill faster than they are analyzed. What a writer looks up is a batch, and an index has it, whatever the
statistics say: left to itself, the planner read the whole log for every batch of it."""


class PostgresDatabase:
    """One server; any number of machines."""

    dialect: Literal["postgres"] = "postgres"
    has_one_writer = False
    carries_hints = True
    file = None

    def __init__(
        self,
        url: str,
        *,
        durability: Durability = "power-safe",
        pool_size: int = 8,
        awaits_absent: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
        compare_seconds: float = COMPARE_SECONDS,
    ) -> None:
        """Connect to nothing yet. One that `awaits_absent` waits at first even where nothing answers at the address."""
        self.url = url
        self._parameters = parameters(url)
        self._hosts: dict[str, str] = {}
        self._awaits_absent = awaits_absent
        self._patience_seconds = patience_seconds
        self._synchronous = "on" if durability == "power-safe" else "off"
        self._offset_ms = int(os.environ.get("TIDINGS_CLOCK_OFFSET_MS", "0"))
        self._is_clock_moved = False
        self._is_reached = False
        self._local = threading.local()
        self._listening = threading.Lock()
        self._listener: BoundConnection | None = None
        self._hinted = float("-inf")
        self._compare_seconds = compare_seconds
        self._compared: float | None = None
        self._comparing = threading.Lock()
        self._difference_ms = 0
        self._seldom = Seldom()
        self._standstill = Standstill(self._dial)
        self._writers = Pool(lambda: self._ready(self._configure_writer), pool_size, self._drop_idle)
        self._readers = Pool(lambda: self._ready(self._configure_reader), pool_size, self._drop_idle)

    def _drop_idle(self) -> None:
        """Close idle connections: once a reader has found its server dead, no writer need find out again."""
        self._writers.drop_idle()
        self._readers.drop_idle()

    def _dial(self, **changes: Any) -> BoundConnection:
        """Connect once; the address is never quoted, since a password may stand in it."""
        try:
            return BoundConnection.connect(self.url, **(self._parameters | changes))
        except psycopg.ProgrammingError:
            raise Misconfigured(
                "database_url cannot be read: is there an unknown parameter after its ?, or in its password "
                "a %, @, / or : that must be written as %25, %40, %2F or %3A?"
            ) from None

    def _reach(self) -> BoundConnection:
        """Connect. The first time, a server that is starting, or full, is waited for; later the loops wait."""
        until = time.monotonic() + (0 if self._is_reached else self._patience_seconds)
        while True:
            try:
                connection = self._dial(**self._hosts)
            except psycopg.OperationalError as error:
                passes = is_passing(error) or (self._awaits_absent and is_absent(error))
                if not passes or time.monotonic() > until:
                    raise
                self._seldom.event("waiting for PostgreSQL", reason=reason(error))
                time.sleep(AGAIN_SECONDS)
            else:
                self._is_reached = True
                self._hosts = hosts_from(self.url, connection.info.host, connection.info.port)
                connection.judge = self._standstill.judge
                return connection

    def _ready(self, configure: Callable[[BoundConnection], None]) -> BoundConnection:
        connection = self._reach()
        try:
            configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: BoundConnection, settings: str = _SESSION) -> None:
        connection.execute(settings)
        connection.execute(composing.SQL("SET synchronous_commit = {}").format(composing.Literal(self._synchronous)))
        self._set_offset(connection)
        connection.commit()

    def _configure_writer(self, connection: BoundConnection) -> None:
        self._configure(connection, f"{_SESSION}; {_BY_INDEX}")

    def _configure_reader(self, connection: BoundConnection) -> None:
        self._configure(connection)
        # One snapshot for all statements of a reading, as SQLite gives. READ COMMITTED takes a new one for each.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True

    def _set_offset(self, connection: BoundConnection) -> None:
        connection.execute("SELECT set_config('tidings.clock_offset_ms', %s, false)", [str(self._offset_ms)])

    def migrations(self) -> list[statements.Migration]:
        """Return the schema's migrations for PostgreSQL, in order."""
        return statements.migrations("postgres")

    def now_ms(self) -> int:
        """Return the server's clock: ours, corrected by a difference that is measured once a minute.

        Only the first measurement is waited for: event loops ask too, and a server that is away answers nobody.
        """
        if self._compared is None:
            self._compare()
        elif time.monotonic() - self._compared > self._compare_seconds and self._comparing.acquire(blocking=False):
            threading.Thread(target=self._compare_aside, name="store-clock", daemon=True).start()
        return time.time_ns() // 1_000_000 + self._difference_ms + self._offset_ms

    def _compare(self) -> None:
        ours, offset_ms = time.time_ns() // 1_000_000, self._offset_ms
        theirs = read_clock(self)
        if offset_ms == self._offset_ms:  # else it was moved meanwhile
            self._difference_ms = theirs - offset_ms - ours
            self._compared = time.monotonic()

    def _compare_aside(self) -> None:
        try:
            self._compare()
        except TidingsError:
            # The difference that was measured last goes on.
            self._compared = time.monotonic()
        finally:
            self._comparing.release()

    def move_clock(self, offset_ms: int) -> None:
        """Set how far the clock is moved, for every connection of this process."""
        self._offset_ms = offset_ms
        self._is_clock_moved = True

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Open a writing transaction, or join the one this thread is in by a savepoint."""
        with self._open(self._writers, "writing", self._standstill.writing) as tx:
            yield tx

    @contextmanager
    def reading(self) -> Iterator[Tx]:
        """Open one snapshot from the readers' pool; inside a writing transaction, look through that."""
        writing: PostgresTx | None = getattr(self._local, "writing", None)
        if writing is not None:
            with translated():
                yield writing
            return
        with self._open(self._readers, "reading", self._standstill.reading) as tx:
            yield tx

    @contextmanager
    def _open(self, pool: Pool, mode: str, progress: Progress) -> Iterator[Tx]:
        current: PostgresTx | None = getattr(self._local, mode, None)
        with translated():
            if current is not None:
                with current.connection.transaction():
                    yield current
                return
            with progress.call(), pool.connection() as connection:
                tx = PostgresTx(connection)
                setattr(self._local, mode, tx)
                try:
                    # Begun here: else an inner transaction that came before any statement would be the outer one.
                    with connection.transaction():
                        if self._is_clock_moved:
                            self._set_offset(connection)
                        yield tx
                finally:
                    connection.is_unlimited = False
                    setattr(self._local, mode, None)

    def lock(self, tx: Tx, name: str, *, is_shared: bool = False) -> None:
        """Hold an advisory lock until the transaction ends."""
        tx.value("share_lock" if is_shared else "take_lock", name=f"tidings:{name}")

    def changes(self) -> int:
        """Return nothing of use: hints come by notification."""
        return 0

    def hint(self) -> None:
        """Tell other processes that there is work; at most a few times a second, since they poll anyway."""
        now = time.monotonic()
        # PostgreSQL lets transactions that notify commit only one after the other, across the whole server.
        if now - self._hinted < HINT_SECONDS:
            return
        self._hinted = now
        with contextlib.suppress(StoreUnavailable), self.transaction() as tx:
            assert isinstance(tx, PostgresTx)
            tx.connection.execute("NOTIFY tidings_work")

    def wait_for_hint(self, seconds: float) -> bool:
        """Wait for a notification on a connection of its own; False when time is up."""
        with self._listening, translated():
            if self._listener is None or self._listener.closed:
                self._listener = self._reach()
                # The server delivers notifications only between transactions.
                self._listener.autocommit = True
                self._listener.execute("LISTEN tidings_work")
            try:
                return next(self._listener.notifies(timeout=seconds, stop_after=1), None) is not None
            except psycopg.OperationalError:
                self._listener = None
                raise

    def describe(self) -> str:
        """Name server and database, without user or password."""
        info = psycopg.conninfo.conninfo_to_dict(self.url)
        return f"PostgreSQL at {info.get('host', 'localhost')}, database {info.get('dbname', '?')}"

    def standstill(self) -> str | None:
        """Say that nothing goes on, since when, and what it waits for."""
        for pool in (self._writers, self._readers):
            if (trouble := pool.unreachable_for()) is not None:
                seconds, why = trouble
                return f"no connection for {seconds:.0f} s: {why}"
        return self._standstill.describe()

    def close(self) -> None:
        """Close every connection; calls that wait for the server end within a moment."""
        self._standstill.close()
        if self._listener is not None:
            self._listener.close()
        self._writers.close()
        self._readers.close()


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's exceptions into ours, with what helps."""
    try:
        yield
    # The order counts: most of these are subclasses of `OperationalError`, and so of `psycopg.Error` below.
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory) as error:
        raise StoreUnavailable("PostgreSQL has no room left; free some space and tidings goes on") from error
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
        raise Contention("two writers waited for each other; the same call may be made again") from error
    except psycopg.errors.LockNotAvailable as error:
        raise Contention("another writer held the rows for more than 2 s; the same call may be made again") from error
    except psycopg.errors.QueryCanceled as error:
        raise StoreUnavailable(f"PostgreSQL gave up waiting: {reason(error)}") from error
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction) as error:
        raise StoreReadOnly(f"this user of PostgreSQL may not write here: {reason(error)}") from error
    except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError):
        raise  # what was to be written is at fault, not the database
    except psycopg.Error as error:
        raise StoreUnavailable(f"PostgreSQL failed: {reason(error)}") from error
