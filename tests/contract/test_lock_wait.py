"""A SQLite file whose lock another process holds is waited for, and the operator is told who holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.logs import listening

from tidings.model.errors import StoreUnavailable
from tidings.store.db.sqlite import SqliteDatabase
from tidings.store.upkeep.migrate import migrate

HOLDER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
print("freed", flush=True)
"""


@contextmanager
def held(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Hold the lock in another process, which is stopped as by Ctrl-Z."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def freed(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    os.kill(process.pid, signal.SIGCONT)
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_stopped_process_that_holds_the_lock_is_waited_for_and_named(tmp_path: Path) -> None:
    file = tmp_path / "tidings.db"
    first = SqliteDatabase(str(file))
    migrate(first)
    first.close()
    with held(file) as holder, listening() as lines:
        database = SqliteDatabase(str(file))
        done = threading.Event()

        def write() -> None:
            with database.transaction() as tx:
                tx.run("drop_mark", name="none")
            done.set()

        thread = threading.Thread(target=write)
        thread.start()
        # Longer than a process that works already would wait: a command has no other chance.
        while not any("'seconds': 6" in line for line in lines.told):
            assert lines.has_told.wait(20)
            assert not done.wait(0.1)
        said = database.standstill()
        assert said is not None
        assert said.startswith("no commit for ")
        if Path("/proc/locks").exists():
            assert said.endswith(f"held by process {holder.pid}, which is stopped")
        freed(holder)
        assert done.wait(20)
        thread.join()
        assert len(lines.told) <= 8, "more than a line a second"
        assert database.standstill() is None
        database.close()


def test_a_lock_that_is_never_freed_is_not_waited_for_without_limit(tmp_path: Path) -> None:
    file = tmp_path / "tidings.db"
    database = SqliteDatabase(str(file), patience_seconds=1.5)
    with held(file), pytest.raises(StoreUnavailable, match=r"tidings\.db stayed locked by "):
        migrate(database)
    database.close()
