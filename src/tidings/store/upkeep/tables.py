"""Tables on their way between databases: which there are, and how their rows travel in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import NamedTuple

from tidings.store.db.database import Row, Tx
from tidings.store.db.sqlite_tx import SqliteTx

BATCH = 1_000
_OF_ONE_DATABASE = ("meta", "migrations")
"""Facts about one database itself, which no other takes over."""


class TableColumn(NamedTuple):
    """One column of a table; its place in the primary key begins with 1, and 0 is outside of it."""

    table_name: str
    is_without_rowid: int
    name: str
    place_in_key: int


def columns_by_table(file: SqliteTx) -> dict[str, list[TableColumn]]:
    """Return the columns of every table of a SQLite file, the schema's own first."""
    columns = file.rows(TableColumn, "list_columns")
    return {table: list(group) for table, group in groupby(columns, key=lambda column: column.table_name)}


def tables_of(file: SqliteTx) -> dict[str, list[str]]:
    """Return the tables that are copied, with their columns."""
    return {
        table: [column.name for column in columns]
        for table, columns in columns_by_table(file).items()
        if table not in _OF_ONE_DATABASE and not table.startswith(("sqlite_", "_litestream_"))
    }


def count_rows(file: SqliteTx) -> dict[str, int]:
    """Count the rows of every table."""
    return {table: file.count_rows(table) for table in tables_of(file)}


def copy_all(source: Tx, target: Tx, tables: dict[str, list[str]]) -> Iterator[int]:
    """Copy tables; yield the number of rows after each batch."""
    for table, columns in tables.items():
        for batch in _batches(source.scan(table, columns)):
            target.fill(table, columns, batch)
            yield len(batch)


def copy_last_drawn(source: Tx, target: Tx, tables: Iterable[str]) -> None:
    """Never draw a number again: a finding with a number behind the checkpoint would be lost."""
    for table in tables:
        if last := source.value("last_drawn", table=table):
            target.run("draw_beyond", table=table, last=last)


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(islice(rows, BATCH)):
        yield batch
