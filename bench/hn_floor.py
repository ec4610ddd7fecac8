"""The least that must be done: decode, clean the HTML, insert, index the text, one commit a batch. No workflow.

The search is the same as in tidings: the same tokenizers, the same index settings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import apsw
import msgspec
import psycopg

from tidings.pipelines.hacker_news.cleaning import clean_text, clean_title
from tidings.pipelines.hacker_news.item import Given

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
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5 (title, text, tokenize = 'porter unicode61 remove_diacritics 2')"
    )
    started = time.perf_counter()
    count = 0
    for rows in _batches(lines):
        with connection:
            connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            connection.executemany(
                "INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", [(row[0], row[6], row[7]) for row in rows]
            )
        count += len(rows)
    seconds = time.perf_counter() - started
    connection.close()
    return count / seconds


def postgres(lines: Path, url: str) -> float:
    """Return items a second on PostgreSQL: COPY into a table with a stored tsvector under a GIN index."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bench_floor")
        connection.execute(
            "CREATE TABLE bench_floor (id bigint PRIMARY KEY, type text, author text, time bigint, score bigint,"
            " parent bigint, title text, text text, body bytea, words tsvector GENERATED ALWAYS AS"
            " (setweight(to_tsvector('english', title), 'A') || to_tsvector('english', text)) STORED)"
        )
        connection.execute(
            "CREATE INDEX ON bench_floor USING gin (words) WITH (fastupdate = on, gin_pending_list_limit = 8192)"
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
    title = clean_title(item.title) if item.title else ""
    text = clean_text(item.text) if item.text else ""
    return (item.id, item.type, item.by, item.time, item.score, item.parent, title, text, line)
