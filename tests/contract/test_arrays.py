"""Batches as PostgreSQL's binary arrays: what is sent is what arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.support.postgres import new_postgres_database

from tidings.store.db.arrays import SQL_TYPES, array

COLUMNS: list[tuple[str, list[Any]]] = [
    ("text", ["", "plain", 'quo"ted', "back\\slash", "{a,b}", "NULL", "naïve 漢字 🦊", "tab\tline\nend"]),
    ("text", ["a", None, "", None]),
    ("text", [None, None, None]),
    ("text", ["same"] * 50),
    ("bigint", [0, 1, -1, 2**63 - 1, -(2**63)]),
    ("bigint", [5, None, 7]),
    ("bigint", [True, False]),
    ("bytea", [b"", b"\0\xff\\", bytes(range(256))]),
    ("bytea", [None, b"x", None]),
    ("double", [0.0, -1.5, 1e300, 0.1]),
    ("double", [None, 2.5]),
]


@pytest.fixture(scope="module")
def connection(postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(new_postgres_database(postgres_server), autocommit=True) as opened:
        yield opened


@pytest.mark.parametrize(("kind", "column"), COLUMNS)
def test_a_column_arrives_as_it_was_sent(connection: psycopg.Connection[Any], kind: str, column: list[Any]) -> None:
    rows = connection.execute(f"SELECT unnest(%(c)s::{SQL_TYPES[kind]}[])", {"c": array(column, kind)}).fetchall()
    assert [row[0] for row in rows] == column


@pytest.mark.parametrize("text", ["nul\0nul", "lone \ud800"])
def test_a_text_that_postgres_cannot_hold_is_refused(connection: psycopg.Connection[Any], text: str) -> None:
    with pytest.raises((psycopg.DataError, UnicodeEncodeError)):
        connection.execute("SELECT unnest(%(c)s::text[])", {"c": array(["before", text], "text")})
