"""What the store's parts need of a database: transactions that run named statements."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from tidings.model.errors import Misconfigured, StoreUnavailable
from tidings.store.db.statements import Migration

Row = tuple[Any, ...]
R = TypeVar("R")
Given = Iterable[tuple[Any, ...]]
"""A batch: tuples, or NamedTuples with the names of the statement's `-- rows:` line."""
Durability = Literal["power-safe", "crash-safe"]
PATIENCE_SECONDS = 30.0
"""How long the first call waits for a server that is starting or full, or for a stopped process's lock."""


class Contention(StoreUnavailable):
    """Two writers waited for each other and one had to give way; the same call may be made again at once."""


class Tx(Protocol):
    """An open transaction. Statements are named; `row` is the NamedTuple (or Struct) whose fields are their columns."""

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]:
        """Which database it is."""
        ...

    def rows(self, row: Callable[..., R], name: str, /, **values: Any) -> list[R]:
        """Run a statement; return its rows."""
        ...

    def row(self, row: Callable[..., R], name: str, /, **values: Any) -> R | None:
        """Run a statement; return its first row."""
        ...

    def value(self, name: str, /, **values: Any) -> Any:
        """Run a statement of one column; return its first value, or None."""
        ...

    def returning(self, row: Callable[..., R], name: str, given: Given, /, **values: Any) -> list[R]:
        """Run a statement on a batch of rows; return what it returns."""
        ...

    def put(self, name: str, given: Given, /, **values: Any) -> int:
        """Run a statement on a batch of rows; return how many rows it changed."""
        ...

    def run_script(self, text: str) -> None:
        """Run many statements without values: migrations, which are files of their own and no named statements."""
        ...

    def take_time(self) -> None:
        """Lift the limits on how long statements may take until the transaction ends: a restore writes everything."""
        ...

    def scan(self, table: str, columns: Sequence[str]) -> Generator[Row]:
        """Read a whole table without holding it in memory.

        A backup copies every table by the names that it finds in the schema, so no named statement can do it.
        """
        ...

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Write rows into a table as they are; `scan` says why there is no named statement for it."""
        ...

    def run(self, name: str, /, **values: Any) -> int:
        """Run a named statement and return how many rows it changed."""
        ...


class Database(Protocol):
    """One database, whichever it is."""

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]:
        """Which database it is."""
        ...

    @property
    def has_one_writer(self) -> bool:
        """Tell whether writing transactions exclude each other, so that one commit may as well serve many calls."""
        ...

    @property
    def carries_hints(self) -> bool:
        """Tell whether `hint` reaches other processes; where it does not, `changes` tells that they have written."""
        ...

    @property
    def file(self) -> Path | None:
        """Where the database lies on this machine; None for a server, which looks after its disk itself."""
        ...

    def migrations(self) -> list[Migration]:
        """Return the schema's migrations for this database, in order."""
        ...

    def transaction(self) -> AbstractContextManager[Tx]:
        """Open a writing transaction, or join the one this thread is in."""
        ...

    def reading(self) -> AbstractContextManager[Tx]:
        """Open a reading transaction: one snapshot."""
        ...

    def lock(self, tx: Tx, name: str, *, is_shared: bool = False) -> None:
        """Hold a named lock until the transaction ends; transactions that share it do not exclude each other."""
        ...

    def move_clock(self, offset_ms: int) -> None:
        """Set how far the database's clock is moved, for tests."""
        ...

    def now_ms(self) -> int:
        """Return the database's clock without asking it each time; good enough for waits, never for leases."""
        ...

    def changes(self) -> int:
        """Return a number that differs after another process has written, where the database knows one."""
        ...

    def hint(self) -> None:
        """Tell other processes that there is work, where that is possible."""
        ...

    def wait_for_hint(self, seconds: float) -> bool:
        """Wait for another process's hint; False when time is up."""
        ...

    def describe(self) -> str:
        """Name the database without any secret."""
        ...

    def standstill(self) -> str | None:
        """Say that nothing goes on, since when, and what it waits for; None where all goes on. Asks no server."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


def connect(url: str, *, durability: Durability = "power-safe", pool_size: int = 8) -> Database:
    """Open the database a URL names."""
    if url.startswith("sqlite:///"):
        from tidings.store.db.sqlite import SqliteDatabase

        return SqliteDatabase(url.removeprefix("sqlite:///"), durability=durability)
    if url.startswith(("postgresql://", "postgres://")):
        from tidings.store.db.postgres import PostgresDatabase

        return PostgresDatabase(url, durability=durability, pool_size=pool_size)
    scheme = url.split("://", 1)[0] if "://" in url else "none"
    raise Misconfigured(f"database_url has scheme {scheme!r}; use sqlite:///FILE or postgresql://HOST/NAME")


def read_clock(database: Database) -> int:
    """Ask the database for its clock: UTC milliseconds."""
    with database.reading() as tx:
        return int(tx.value("now"))


def standby_lag_seconds(database: Database) -> float | None:
    """Return by how much a standby may be behind its primary; None where the database is no standby."""
    with database.reading() as tx:
        lag_ms = tx.value("standby_lag")
    return None if lag_ms is None else max(0.0, round(lag_ms / 1000, 1))


def wait_for_server(url: str) -> None:
    """Wait a while for a PostgreSQL at whose address nothing answers yet, as after a restart of the machine."""
    if not url.startswith(("postgresql://", "postgres://")):
        return
    from tidings.store.db.postgres import PostgresDatabase

    database = PostgresDatabase(url, awaits_absent=True)
    try:
        with database.reading():
            pass
    finally:
        database.close()
