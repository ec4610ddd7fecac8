"""The least that must be done: decode, clean the HTML, insert, one commit a batch. No workflow.

Neither has full text: the search follows on its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import apsw
import msgspec
import psycopg

from tidings.net.sanitizer import safe_html, without_tags
from tidings.pipelines.hacker_news.body import Given

BATCH = 500

Row = tuple[int, str | None, str | None, int | None, int | None, int | None, str, str, bytes]


def sqlite(lines: Path, url: str) -> float:
    """Return items a second on SQLite, with the settings tidings uses."""
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    connection.execute("PRAGMA page_size = 8192")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -65536")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute(
        "CREATE TABLE items (id INTEGER PRIMARY KEY, type TEXT, author TEXT, time INTEGER, score INTEGER,"
        " parent INTEGER, title TEXT, text TEXT, body BLOB)"
    )
    started = time.perf_counter()
    count = 0
    for rows in _batches(lines):
        with connection:
            connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        count += len(rows)
    seconds = time.perf_counter() - started
    connection.close()
    return count / seconds


def postgres(lines: Path, url: str) -> float:
    """Return items a second on PostgreSQL: COPY into a table."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bench_floor")
        connection.execute(
            "CREATE TABLE bench_floor (id bigint PRIMARY KEY, type text, author text, time bigint, score bigint,"
            " parent bigint, title text, text text, body bytea)"
        )
        started = time.perf_counter()
        count = 0
        columns = "id, type, author, time, score, parent, title, text, body"
        for rows in _batches(lines):
            with (
                connection.transaction(),
                connection.cursor() as cursor,
                cursor.copy(f"COPY bench_floor ({columns}) FROM STDIN") as copy,
            ):
                for row in rows:
                    copy.write_row(row)
            count += len(rows)
        seconds = time.perf_counter() - started
        connection.execute("DROP TABLE bench_floor")
        return count / seconds


def _batches(lines: Path) -> Iterator[list[Row]]:
    decode = msgspec.json.Decoder(Given).decode
    with lines.open("rb") as file:
        while some := list(islice(file, BATCH)):
            yield [_row(decode(line), line) for line in some]


def _row(item: Given, line: bytes) -> Row:
    title = without_tags(item.title) if item.title else ""
    text = safe_html(item.text) if item.text else ""
    return (item.id, item.type, item.by, item.time, item.score, item.parent, title, text, line)
