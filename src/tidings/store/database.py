"""What the store's parts need of a database: transactions that run named statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tidings.model.errors import Misconfigured, StoreUnavailable

Row = tuple[Any, ...]
Durability = Literal["power-safe", "crash-safe"]
PATIENCE_SECONDS = 30.0
"""How long the first call waits for a server that is starting or full, or for a stopped process's lock."""


class Contention(StoreUnavailable):
    """Two writers waited for each other and one had to give way; the same call may be made again at once."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows made ready for a batch statement: that takes longer than handing them over."""

    name: str
    count: int
    values: Any
    is_fresh: bool = False
    """None of the rows can be there yet."""


class Preparing(Protocol):
    """What makes batches ready; no transaction is needed for that."""

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]:
        """Which database it is for."""
        ...

    def prepare(self, name: str, /, rows: Sequence[Sequence[Any]], *, is_fresh: bool = False) -> Batch:
        """Make rows ready, ordered as the statement's `params` line says."""
        ...


class Tx(Preparing, Protocol):
    """An open transaction."""

    def all(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named statement and return its rows."""
        ...

    def one(self, name: str, /, **values: Any) -> Row | None:
        """Run a named statement and return its first row."""
        ...

    def run(self, name: str, /, **values: Any) -> int:
        """Run a named statement and return how many rows it changed."""
        ...

    def many(self, name: str, /, rows: Iterable[Sequence[Any]]) -> list[Row]:
        """Run a batch statement for rows ordered as its `params` line says; return what it returned."""
        ...

    def write(self, batch: Batch, /, **shared: Any) -> int:
        """Run a batch without what it returns, and count the rows it changed."""
        ...

    def changes_all(self, batch: Batch, /) -> bool:
        """Run a batch if it changes a row for each; else do nothing."""
        ...

    def sql(self, text: str, values: Mapping[str, Any]) -> list[Row]:
        """Run composed SQL (searches, filters); `:name` parameters, values always bound."""
        ...


class Database(Preparing, Protocol):
    """One database, whichever it is."""

    def transaction(self) -> AbstractContextManager[Tx]:
        """Open a writing transaction, or join the one this thread is in."""
        ...

    def reading(self) -> AbstractContextManager[Tx]:
        """Open a reading transaction: one snapshot."""
        ...

    def lock(self, tx: Tx, name: str) -> None:
        """Hold a named lock until the transaction ends."""
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
        """Say that nothing goes on, since when, and what it waits for; None where all goes on. Asks nobody."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


def connect(url: str, *, durability: Durability = "power-safe", pool_size: int = 8) -> Database:
    """Open the database a URL names."""
    if url.startswith("sqlite:///"):
        from tidings.store.sqlite import SqliteDatabase

        return SqliteDatabase(url.removeprefix("sqlite:///"), durability=durability)
    if url.startswith(("postgresql://", "postgres://")):
        from tidings.store.postgres import PostgresDatabase

        return PostgresDatabase(url, durability=durability, pool_size=pool_size)
    scheme = url.split("://", 1)[0] if "://" in url else "none"
    raise Misconfigured(f"database_url has scheme {scheme!r}; use sqlite:///FILE or postgresql://HOST/NAME")


def wait_for_server(url: str) -> None:
    """Wait a while for a PostgreSQL at whose address nothing answers yet, as after a restart of the machine."""
    if not url.startswith(("postgresql://", "postgres://")):
        return
    from tidings.store.postgres import PostgresDatabase

    database = PostgresDatabase(url, awaits_absent=True)
    try:
        with database.reading():
            pass
    finally:
        database.close()
