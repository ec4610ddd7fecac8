"""Tables on their way between databases: which there are, and how their rows travel in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import apsw
import msgspec

from tidings.store.database import Row, Tx
from tidings.store.postgres import PostgresTx
from tidings.store.shelving import prepare_documents
from tidings.store.sqlite import SqliteTx

BATCH = 1_000
_DOCUMENT = ("id", "pipeline", "kind", "key", "author", "type", "score", "time", "url", "attributes")
_canonical = msgspec.json.Encoder(order="deterministic").encode


def tables_of(connection: apsw.Connection) -> dict[str, list[str]]:
    """Return tables and their columns, but for facts about one database itself and the documents, kept differently."""
    named = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('meta', 'migrations', 'digests') "
        "AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'documents*' ORDER BY name"
    )
    return {
        str(name): [str(row[0]) for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
        for (name,) in list(named)
    }


def numbered_tables(connection: apsw.Connection) -> list[str]:
    """Return the tables whose ids are drawn, and never drawn again."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'")
    return [str(row[0]) for row in list(found)]


def count_rows(connection: apsw.Connection) -> dict[str, int]:
    """Count the rows of every table, and the documents."""
    names = [*tables_of(connection), "documents"]
    return {name: number(connection, f"SELECT count(*) FROM {name}") for name in names}  # noqa: S608  # our own names


def read_rows(source: apsw.Connection, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
    """Read a table of a SQLite file."""
    return _batches(source.execute(f"SELECT {_names(columns)} FROM {table}"))  # noqa: S608  # our own names


def stream_rows(tx: PostgresTx, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
    """Read a table of PostgreSQL without holding it in memory."""
    return _stream(tx, f"SELECT {_names(columns)} FROM {table}")  # noqa: S608  # our own names


def read_documents(source: apsw.Connection) -> Iterator[list[Row]]:
    """Read the search's documents of a SQLite file, with title and text at the end."""
    listed = ", ".join(f"d.{column}" for column in _DOCUMENT)
    joined = "FROM documents d JOIN documents_text t ON t.rowid = d.id"
    return _batches(source.execute(f"SELECT {listed}, t.title, t.text {joined}"))  # our own names


def stream_documents(tx: PostgresTx) -> Iterator[list[Row]]:
    """Read the search's documents of PostgreSQL, with title and text at the end."""
    listed = ", ".join(column if column != "attributes" else "attributes::text" for column in _DOCUMENT)
    for batch in _stream(tx, f"SELECT {listed}, title, body FROM documents"):  # noqa: S608  # our own names
        # The databases write JSON differently; ours is the canonical form.
        yield [(*row[:9], _canonical(msgspec.json.decode(row[9])).decode(), *row[10:]) for row in batch]


def put_rows(tx: Tx, table: str, columns: Sequence[str], rows: list[Row]) -> None:
    """Write rows as they are."""
    if isinstance(tx, SqliteTx):
        marks = ", ".join("?" * len(columns))
        tx.connection.executemany(f"INSERT INTO {table} ({_names(columns)}) VALUES ({marks})", rows)  # noqa: S608
        return
    assert isinstance(tx, PostgresTx)
    with tx.connection.cursor() as cursor, cursor.copy(f"COPY {table} ({_names(columns)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def put_documents(tx: Tx, rows: list[Row]) -> None:
    """Write the search's documents; the full text is indexed anew."""
    for batch in prepare_documents(tx, [row[:10] for row in rows], [(row[0], row[10], row[11]) for row in rows]):
        tx.write(batch)


def drawn(tx: Tx, table: str) -> int:
    """Return the highest id ever drawn for a table."""
    if isinstance(tx, SqliteTx):
        rows = tx.sql("SELECT seq FROM sqlite_sequence WHERE name = :name", {"name": table})
    else:
        rows = tx.sql(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {table}_id_seq", {})  # noqa: S608
    return int(rows[0][0]) if rows else 0


def draw_beyond(tx: Tx, table: str, last: int) -> None:
    """Never draw a number again: a finding with a number behind the checkpoint would be lost."""
    if not last:
        return
    values = {"name": table, "last": last}
    if isinstance(tx, SqliteTx):
        tx.sql("DELETE FROM sqlite_sequence WHERE name = :name", {"name": table})
        tx.sql("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)", values)
    else:
        tx.sql("SELECT setval(:name, :last)", {**values, "name": f"{table}_id_seq"})


def number(connection: apsw.Connection, select: str) -> int:
    """Return the one number a statement asks for."""
    value = next(iter(connection.execute(select)))[0]
    assert isinstance(value, int)
    return value


def _stream(tx: PostgresTx, select: str) -> Iterator[list[Row]]:
    with tx.connection.cursor(name="copying") as cursor:
        cursor.execute(select)
        while batch := cursor.fetchmany(BATCH):
            yield batch


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _names(columns: Sequence[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)
