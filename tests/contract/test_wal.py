"""SQLite's write-ahead log: copied beside the writer, never longer than it may be, and nothing of it lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from tests.support.own_sql import own_sql
from tests.support.waiting import until

from tidings.store.db.sqlite import SqliteDatabase
from tidings.store.db.wal import PAGES, PAGES_MAX

PAGE_BYTES = 8192
ROW = b"x" * 50_000
ROUNDS = 200
WRITING = """
import sys
from pathlib import Path
from tests.contract.test_wal import open_database, write
database = open_database(Path(sys.argv[1]))
for _ in sys.stdin:
    write(database, 20)
    print("written", flush=True)
database.close()
"""
"""Writes whenever it is told to."""


def open_database(path: Path) -> SqliteDatabase:
    database = SqliteDatabase(str(path), durability="crash-safe")
    with database.transaction() as tx:
        own_sql(tx, "CREATE TABLE IF NOT EXISTS heavy (id INTEGER PRIMARY KEY, body BLOB)")
    return database


def write(database: SqliteDatabase, rows: int) -> None:
    with database.transaction() as tx:
        for _ in range(rows):
            own_sql(tx, "INSERT INTO heavy (body) VALUES (:body)", {"body": ROW})


def log_of(file: Path) -> float:
    """Return the length of the log in pages."""
    return file.with_name(f"{file.name}-wal").stat().st_size / PAGE_BYTES


def copying() -> int:
    return sum(thread.name == "wal" for thread in threading.enumerate())


async def test_a_log_that_grows_is_copied_beside_the_writer(tmp_path: Path) -> None:
    file, before = tmp_path / "a.db", copying()
    database = open_database(file)
    while log_of(file) < PAGES + 100:
        write(database, 40)

    assert copying() == before + 1
    await until(lambda: file.stat().st_size >= PAGES * PAGE_BYTES)  # and nothing was closed yet
    database.close()
    assert copying() == before


def test_the_log_is_bounded_though_somebody_always_writes(tmp_path: Path) -> None:
    file, rows, longest = tmp_path / "a.db", 0, 0.0
    database = open_database(file)
    while rows * len(ROW) < 3 * PAGES_MAX * PAGE_BYTES:
        write(database, 100)
        rows += 100
        longest = max(longest, log_of(file))
    with database.reading() as tx:
        assert own_sql(tx, "SELECT count(*) FROM heavy") == [(rows,)]
    database.close()

    assert longest < 1.2 * PAGES_MAX
    again = open_database(file)
    with again.reading() as tx:
        assert own_sql(tx, "SELECT count(*), min(length(body)) FROM heavy") == [(rows, len(ROW))]
    again.close()


def test_the_log_is_bounded_though_two_processes_write(tmp_path: Path) -> None:
    """Each copies what both wrote, and neither loses what the other wrote meanwhile."""
    file = tmp_path / "a.db"
    open_database(file).close()
    command = [sys.executable, "-c", WRITING, str(file)]
    writers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    longest = 0.0
    for _ in range(ROUNDS):
        for writer in writers:
            assert writer.stdin is not None
            print(file=writer.stdin, flush=True)
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "written\n"
        longest = max(longest, log_of(file))
    for writer in writers:
        writer.communicate()

    assert [writer.returncode for writer in writers] == [0, 0]
    assert PAGES < longest < 2 * PAGES_MAX
    database = open_database(file)
    with database.reading() as tx:
        assert own_sql(tx, "SELECT count(*) FROM heavy") == [(2 * ROUNDS * 20,)]
    database.close()
