"""Checks whether a database is fit for use, before anything is written, and more closely after an unclean stop."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import apsw

from tidings.model.errors import Misconfigured, StoreUnavailable
from tidings.store.db.database import Database, Tx, connect
from tidings.store.db.sqlite import translated
from tidings.store.db.sqlite_tx import SqliteTx
from tidings.store.db.statements import migrations
from tidings.store.upkeep.migrate import check_schema, read_applied, refuse_foreign

SQLITE = "sqlite:///"
MARK = "running:"
"""In the table `meta`: one row for each process that works, removed when it stops cleanly."""


class RunningMark(NamedTuple):
    """A process that works on the database, or did and was not stopped cleanly."""

    name: str
    process: str


def vet(url: str) -> list[str]:
    """Look at a database without writing; return notes for the operator, or raise StoreUnavailable saying what helps.

    A SQLite file gets a quick check, and a full one if a process that worked on it never stopped cleanly.
    """
    if url.startswith(SQLITE):
        return _vet_file(Path(url.removeprefix(SQLITE)))
    database = connect(url)
    try:
        problem = check_schema(database)
    finally:
        database.close()
    if problem is not None and "tidings db migrate" not in problem:
        raise StoreUnavailable(problem)
    return []


def has_token(url: str) -> bool:
    """Tell, without writing, whether a database holds a token that is not revoked."""
    if url.startswith(SQLITE):
        return _has_token(Path(url.removeprefix(SQLITE)))
    database = connect(url)
    try:
        if check_schema(database) is not None:
            return False
        with database.reading() as tx:
            return tx.value("any_token") is not None
    finally:
        database.close()


def _has_token(file: Path) -> bool:
    if not file.exists():
        return False
    with closing(open_read_only(file)) as connection, translated(str(file)):
        tx = SqliteTx(connection)
        return "tokens" in tx.rows(str, "tables") and tx.value("any_token") is not None


def _vet_file(file: Path) -> list[str]:
    if not file.exists():
        return []
    if not file.is_file():
        raise StoreUnavailable(f"{file.name} is no file; name a file in database_url")
    if not file.stat().st_size:
        return _vet_empty(file)
    with translated(str(file)):
        _refuse_damage(file, "quick_check")
        with _snapshot(file) as tx:
            tables = tx.rows(str, "tables")
            _refuse_other_schema(tx, tables, file)
            was_left_behind = "meta" in tables and any(not _is_alive(mark.process) for mark in _marks(tx))
        if not was_left_behind:
            return []
        _refuse_damage(file, "integrity_check")
    return [f"{file.name} was not closed cleanly the last time; it was checked in full and is sound"]


def _vet_empty(file: Path) -> list[str]:
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and log.stat().st_size:
        # SQLite would take the file for a new one and delete the log, which may hold everything.
        raise StoreUnavailable(
            f"{file.name} is empty but {log.name} is not: the database was cut off; restore it: tidings restore BACKUP"
        )
    return [f"{file.name} is empty; a new database begins in it"]


def open_read_only(file: Path) -> apsw.Connection:
    """Open a SQLite file so that nothing is written to it, not even what its log holds."""
    with translated(str(file)):
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(5000)
    return connection


def is_write_locked(file: Path, wait_ms: int) -> bool:
    """Tell whether others keep a SQLite file from being written for so long. Nothing is written."""
    with translated(str(file)), closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.set_busy_timeout(wait_ms)
        try:
            connection.execute("BEGIN IMMEDIATE; ROLLBACK")
        except apsw.BusyError:
            return True
    return False


def _refuse_damage(file: Path, check: Literal["quick_check", "integrity_check"]) -> None:
    """Refuse a file only if two looks, each through a connection of its own, find damage.

    Full text (FTS5) remembers in its connection which segments the index had, and its part of the check does not ask
    whether that still holds. A second check through the same connection, in a newer snapshot, compares the segments of
    then with the rows of now: "checksum mismatch" in a sound file, whenever another process wrote in between.
    """
    if _damage(file, check) is None:
        return
    damage = _damage(file, check)
    if damage is not None:
        raise StoreUnavailable(
            f"{file.name} is damaged ({damage}); nothing was written. Move it away and bring back "
            "the last backup: tidings restore BACKUP"
        )


def _damage(file: Path, check: Literal["quick_check", "integrity_check"]) -> str | None:
    """Look at one snapshot of the file; return what is wrong with it."""
    try:
        with _snapshot(file) as tx:
            damage = tx.damage(check)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return str(error)
    return None if damage is None else damage.splitlines()[-1]


@contextmanager
def _snapshot(file: Path) -> Iterator[SqliteTx]:
    """Read one snapshot through a connection that nothing was read through before."""
    with closing(open_read_only(file)) as connection:
        connection.execute("BEGIN")
        yield SqliteTx(connection)


def _refuse_other_schema(tx: SqliteTx, tables: list[str], file: Path) -> None:
    if tables and "migrations" not in tables:
        raise StoreUnavailable(f"{file.name} is a database of something else; name another file in database_url")
    try:
        refuse_foreign(read_applied(tx) if tables else {}, migrations("sqlite"))
    except Misconfigured as error:
        raise StoreUnavailable(str(error)) from None


def _marks(tx: Tx) -> list[RunningMark]:
    return tx.rows(RunningMark, "marks", pattern=f"{MARK}%")


@contextmanager
def marked(database: Database) -> Iterator[None]:
    """Leave a mark while this process works. The first write: a read-only or full disk shows itself here."""
    if database.file is None:
        yield  # a server recovers by itself
        return
    name = f"{MARK}{secrets.token_hex(4)}"
    with database.transaction() as tx:
        for mark in _marks(tx):
            if not _is_alive(mark.process):
                tx.run("drop_mark", name=mark.name)
        tx.run("leave_mark", name=name, process=_identity(os.getpid()))
    try:
        yield
    finally:
        # A disk that is full by now costs only a full check at the next start.
        with suppress(StoreUnavailable), database.transaction() as tx:
            tx.run("drop_mark", name=name)


def _identity(pid: int) -> str:
    return f"{socket.gethostname()} {pid} {_started(pid)}"


def _is_alive(identity: str) -> bool:
    """Tell whether the process that left a mark runs here and now; a number used again is another process."""
    pid = int(identity.split()[-2])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs, as another user
    return identity == _identity(pid)


def _started(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "?"
