"""What a database says of a named statement without running it: how it would go about it, and what it would return."""

from __future__ import annotations

import re

import apsw.ext

from tidings.store.db import postgres_tx, sqlite_tx, statements
from tidings.store.db.database import Tx
from tidings.store.db.postgres_tx import PostgresTx
from tidings.store.db.sqlite_tx import SqliteTx


def columns_of(tx: Tx, name: str) -> tuple[str, ...]:
    """Return the names of the columns that a statement returns."""
    if isinstance(tx, SqliteTx):
        return tuple(column[0] for column in _query(tx, name).description)
    assert isinstance(tx, PostgresTx)
    server = tx.connection.pgconn
    prepared = server.prepare(b"", _numbered(name).encode())
    assert not prepared.error_message, f"{name}: {prepared.error_message.decode()}"
    described = server.describe_prepared(b"")
    return tuple((described.fname(number) or b"").decode() for number in range(described.nfields))


def plan_of(tx: Tx, name: str) -> str:
    """Return how the database would run a statement, whatever the values are."""
    if isinstance(tx, SqliteTx):
        return str(_query(tx, name).query_plan)
    assert isinstance(tx, PostgresTx)
    rows = tx.connection.execute(f"EXPLAIN (GENERIC_PLAN) {_numbered(name)}").fetchall()
    return "\n".join(str(line) for (line,) in rows)


def _numbered(name: str) -> str:
    """Return the text of a statement as PostgreSQL itself would have it, with $1 for the first value."""
    numbers: dict[str, str] = {}
    text = re.sub(
        r"%\((\w+)\)s", lambda match: numbers.setdefault(match[1], f"${len(numbers) + 1}"), postgres_tx.compiled(name)
    )
    return text.replace("%%", "%")


def _query(tx: SqliteTx, name: str) -> apsw.ext.QueryDetails:
    """Have a statement prepared, as for one row where it takes a batch."""
    statement = statements.load("sqlite")[name]
    text, params = sqlite_tx.compiled(name, 1 if statement.columns else 0)
    values = [None] * (len(statement.columns) + len(params))
    return apsw.ext.query_info(tx.connection, text, values, explain_query_plan=True)
