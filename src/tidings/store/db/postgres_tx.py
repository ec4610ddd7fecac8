"""A transaction on PostgreSQL: statements in the driver's style, batches as one array a column."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import cache
from itertools import starmap
from typing import Any, Literal, TypeVar

import psycopg
from psycopg import sql as composing

from tidings.store.db import statements
from tidings.store.db.arrays import SQL_TYPES, array
from tidings.store.db.bound_connection import BoundConnection
from tidings.store.db.database import Given, Row
from tidings.store.db.statements import check_batch

R = TypeVar("R")
SCAN_ROWS = 1_000


@cache
def compiled(name: str) -> str:
    """Return a statement's text in the driver's style; a batch arrives as one array a column."""
    statement = statements.load("postgres")[name]
    text = statements.PARAMETER.sub(r"%(\1)s", statement.text.replace("%", "%%"))
    if not statement.columns:
        return text
    arrays = ", ".join(f"%({column.name})s::{SQL_TYPES[column.type]}[]" for column in statement.columns)
    given = f"given ({', '.join(statement.fields)}) AS (SELECT * FROM unnest({arrays}))"  # noqa: S608  # our own names
    return statements.with_given(text, given)


def columns_of(name: str, rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return a batch as one array a column, by the column's name."""
    statement = statements.load("postgres")[name]
    check_batch(statement, rows)
    columns = zip(statement.columns, zip(*rows, strict=True), strict=True)
    return {column.name: array(cells, column.type) for column, cells in columns}


class PostgresTx:
    """A transaction on one connection."""

    dialect: Literal["postgres"] = "postgres"

    def __init__(self, connection: BoundConnection) -> None:
        self.connection = connection

    def take_time(self) -> None:
        """Lift the limits on statements until the transaction ends, on the server's side and on ours."""
        self.connection.is_unlimited = True
        self.connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")

    def rows(self, row: Callable[..., R], name: str, /, **values: Any) -> list[R]:
        """Run a statement; return its rows."""
        return list(starmap(row, self.connection.execute(compiled(name), values).fetchall()))

    def row(self, row: Callable[..., R], name: str, /, **values: Any) -> R | None:
        """Run a statement; return its first row."""
        rows = self.rows(row, name, **values)
        return rows[0] if rows else None

    def value(self, name: str, /, **values: Any) -> Any:
        """Run a statement of one column; return its first value, or None."""
        return (self.connection.execute(compiled(name), values).fetchone() or (None,))[0]

    def returning(self, row: Callable[..., R], name: str, given: Given, /, **values: Any) -> list[R]:
        """Run a statement on a batch of rows; return what it returns."""
        rows = list(given)
        return list(starmap(row, self._batch(name, rows, values).fetchall())) if rows else []

    def put(self, name: str, given: Given, /, **values: Any) -> int:
        """Run a statement on a batch of rows; return how many rows it changed."""
        rows = list(given)
        return self._batch(name, rows, values).rowcount if rows else 0

    def _batch(self, name: str, rows: list[tuple[Any, ...]], values: dict[str, Any]) -> psycopg.Cursor[Row]:
        return self.connection.execute(compiled(name), columns_of(name, rows) | values)

    def run_script(self, text: str) -> None:
        """Run many statements without values."""
        self.connection.execute(text)

    def scan(self, table: str, columns: Sequence[str]) -> Generator[Row]:
        """Read a whole table by a cursor of the server, a thousand rows at a time."""
        with self.connection.cursor(name="scan") as cursor:
            cursor.itersize = SCAN_ROWS
            cursor.execute(
                composing.SQL("SELECT {} FROM {}").format(_identifiers(columns), composing.Identifier(table))
            )
            yield from cursor

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Write rows into a table as they are."""
        into = composing.SQL("COPY {} ({}) FROM STDIN").format(composing.Identifier(table), _identifiers(columns))
        with self.connection.cursor() as cursor, cursor.copy(into) as copy:
            for row in rows:
                copy.write_row(row)

    def run(self, name: str, /, **values: Any) -> int:
        """Run a statement; return how many rows it changed."""
        return self.connection.execute(compiled(name), values).rowcount


def _identifiers(names: Sequence[str]) -> composing.Composed:
    return composing.SQL(", ").join(map(composing.Identifier, names))
