"""Backups: one verified SQLite file, whatever the database, taken while everything runs."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import apsw

from tidings.model.errors import BadInput, StoreUnavailable
from tidings.store.checks import MARK, open_read_only
from tidings.store.copying import (
    count_rows,
    draw_beyond,
    drawn,
    numbered_tables,
    put_documents,
    put_rows,
    stream_documents,
    stream_rows,
    tables_of,
)
from tidings.store.database import Database, connect
from tidings.store.digests import UNREADABLE, DamagedTableError, check_digests, has_digests, write_digests
from tidings.store.migrate import migrate
from tidings.store.postgres import PostgresTx
from tidings.store.sqlite import SqliteDatabase, SqliteTx, translated

PAGES = 2_000
TAKEN_AT = "backup_taken_at"

Progress = Callable[[int, int | None], None]
"""Told how much is done, and of how much where that is known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Backup:
    """A backup as it lies there."""

    file: str
    taken_at: int
    """By the clock of the database it was taken from."""
    items: int
    rows: int
    size_bytes: int
    digest: str | None
    """Over the digests of all its tables; backups of older versions have none."""


def write_backup(
    database: Database, file: Path, *, replace: bool = False, progress: Progress = lambda *_: None
) -> Backup:
    """Write one snapshot, check it, make it durable, and only then give it its name."""
    if file.is_dir():
        raise BadInput(f"{file} is a folder; name a file in it")
    if file.exists() and not replace:
        raise BadInput(f"{file} exists already; name another file, or say --force")
    part = file.with_name(f"{file.name}.part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with translated(str(part)):
            copy = _copy_file if isinstance(database, SqliteDatabase) else _copy_tables
            rows = copy(database, part, progress)
            backup = verify(part)
        if rows != backup.rows:
            raise StoreUnavailable(f"{part.name} holds {backup.rows} rows instead of {rows}; take the backup again")
        _sync(part)
        part.replace(file)
        _sync(file.parent)
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from None
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                part.with_name(part.name + ending).unlink(missing_ok=True)
    return dataclasses.replace(backup, file=str(file))


def verify(file: Path, *, unverified: bool = False, progress: Progress = lambda *_: None) -> Backup:
    """Read a backup whole; raise StoreUnavailable where it is damaged, BadInput where it is none.

    Backups of older versions have no digests: they are refused too, unless `unverified` says that this is known.
    """
    if not file.is_file():
        raise BadInput(f"{file} does not exist, or is no file")
    if not file.stat().st_size:
        raise StoreUnavailable(f"{file.name} is empty; use another backup")
    with translated(str(file)), closing(open_read_only(file)) as connection:
        try:
            return _verified(connection, file, unverified, progress)
        except DamagedTableError as damage:
            raise StoreUnavailable(f"{file.name} is damaged ({damage}); use another backup") from None
        except UNREADABLE:
            raise StoreUnavailable(f"{file.name} is damaged or no backup at all; use another one") from None


def _verified(connection: apsw.Connection, file: Path, unverified: bool, progress: Progress) -> Backup:
    digest = check_digests(connection, progress) if has_digests(connection) else None
    _refuse_damage(connection)
    taken_at = _taken_at(connection, file)
    if digest is None and not unverified:
        raise StoreUnavailable(
            f"{file.name} has no digests (an older tidings wrote it): its pages are in order, but whether its content "
            "is what was written cannot be verified; tidings restore FILE --unverified takes it as it is"
        )
    counts = count_rows(connection)
    return Backup(str(file), taken_at, counts["items"], sum(counts.values()), file.stat().st_size, digest)


def _refuse_damage(connection: apsw.Connection) -> None:
    """Check what digests do not reach: the structure of the file, its indexes, the full text index."""
    found = str(next(iter(connection.execute("PRAGMA integrity_check(1)")))[0])
    if found == "ok":
        return
    tree = re.match(r"(?:\*\*\* in database main \*\*\*\s+)?Tree (\d+)", found)
    names = list(connection.execute("SELECT name FROM sqlite_master WHERE rootpage = ?", (tree[1],))) if tree else []
    raise DamagedTableError(": ".join([str(name) for (name,) in names] + [found.splitlines()[-1]]))


def _taken_at(connection: apsw.Connection, file: Path) -> int:
    if not list(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'")):
        raise BadInput(f"{file.name} is no backup of tidings")
    signed = list(connection.execute("SELECT value FROM meta WHERE name = ?", (TAKEN_AT,)))
    if not signed:
        raise BadInput(f"{file.name} is a database in use, not a backup; `tidings backup FILE` takes one")
    return int(str(signed[0][0]))


def _copy_file(database: Database, part: Path, progress: Progress) -> int:
    assert isinstance(database, SqliteDatabase)
    source, target = open_read_only(Path(database.path)), apsw.Connection(str(part))
    try:
        # An open snapshot keeps the copy from starting anew whenever somebody writes; writers do not wait for it.
        source.execute("BEGIN")
        rows = sum(count_rows(source).values())
        taken_at = _now(database)
        with target.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(PAGES)
                progress(copying.page_count - copying.remaining, copying.page_count)
        _sign(target, taken_at)
    finally:
        source.close()
        target.close()
    return rows


def _copy_tables(database: Database, part: Path, progress: Progress) -> int:
    fresh = connect(f"sqlite:///{part}", durability="crash-safe")
    migrate(fresh)
    fresh.close()
    target = apsw.Connection(str(part))
    try:
        target.execute("PRAGMA synchronous = OFF")
        target.execute("BEGIN")
        with database.reading() as tx:
            taken_at = _now(database)
            assert isinstance(tx, PostgresTx)
            rows = _stream_all(tx, target, progress)
        target.execute("COMMIT")
        _sign(target, taken_at)
    finally:
        target.close()
    return rows


def _stream_all(tx: PostgresTx, target: apsw.Connection, progress: Progress) -> int:
    rows = 0
    into = SqliteTx(target)
    for table, columns in tables_of(target).items():
        for batch in stream_rows(tx, table, columns):
            put_rows(into, table, columns, batch)
            progress(rows := rows + len(batch), None)
    for batch in stream_documents(tx):
        put_documents(into, batch)
        progress(rows := rows + len(batch), None)
    for table in numbered_tables(target):
        draw_beyond(into, table, drawn(tx, table))
    return rows


def _sign(target: apsw.Connection, taken_at: int) -> None:
    """Make the copy a backup: one file, no marks of running processes, when it was taken, and what it holds."""
    list(target.execute("PRAGMA journal_mode = DELETE"))
    target.execute("DELETE FROM meta WHERE name GLOB ?", (f"{MARK}*",))
    target.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (TAKEN_AT, str(taken_at)))
    with target:
        write_digests(target)


def _now(database: Database) -> int:
    with database.reading() as tx:
        row = tx.one("now")
    assert row is not None
    return int(row[0])


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
