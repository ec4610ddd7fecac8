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
from tidings.store.db.database import Database, connect, read_clock
from tidings.store.db.sqlite import translated
from tidings.store.db.sqlite_tx import SqliteTx
from tidings.store.upkeep.digests import UNREADABLE, DamagedTableError, check_digests, has_digests, write_digests
from tidings.store.upkeep.migrate import migrate
from tidings.store.upkeep.preflight import MARK, open_read_only
from tidings.store.upkeep.tables import copy_all, copy_last_drawn, count_rows, tables_of

PAGES = 2_000

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
        # For its owner alone: a backup holds everything, the hashes of tokens too.
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with translated(str(part)):
            rows = (_copy_tables if database.file is None else _copy_file)(database, part, progress)
            backup = verify(part)
        if rows != backup.rows:
            raise StoreUnavailable(f"{part.name} holds {backup.rows} rows instead of {rows}; take the backup again")
        _sync(part)
        part.replace(file)
        # A new name is durable only together with its folder.
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
            return _verified(SqliteTx(connection), file, unverified, progress)
        except DamagedTableError as damage:
            raise StoreUnavailable(f"{file.name} is damaged ({damage}); use another backup") from None
        except UNREADABLE:
            raise StoreUnavailable(f"{file.name} is damaged or no backup at all; use another one") from None


def _verified(backup: SqliteTx, file: Path, unverified: bool, progress: Progress) -> Backup:
    digest = check_digests(backup, progress) if has_digests(backup) else None
    _refuse_damage(backup)
    taken_at = _taken_at(backup, file)
    if digest is None and not unverified:
        raise StoreUnavailable(
            f"{file.name} has no digests (an older tidings wrote it): its pages are in order, but whether its content "
            "is what was written cannot be verified; tidings restore FILE --unverified takes it as it is"
        )
    counts = count_rows(backup)
    return Backup(str(file), taken_at, counts["items"], sum(counts.values()), file.stat().st_size, digest)


def _refuse_damage(backup: SqliteTx) -> None:
    """Check what digests do not reach: the structure of the file, its indexes, the full text index."""
    damage = backup.damage("integrity_check")
    if damage is None:
        return
    tree = re.match(r"(?:\*\*\* in database main \*\*\*\s+)?Tree (\d+)", damage)
    names = backup.rows(str, "tree_name", page=int(tree[1])) if tree else []
    raise DamagedTableError(": ".join([*names, damage.splitlines()[-1]]))


def _taken_at(backup: SqliteTx, file: Path) -> int:
    if "meta" not in backup.rows(str, "tables"):
        raise BadInput(f"{file.name} is no backup of tidings")
    taken_at = backup.value("backup_taken_at")
    if taken_at is None:
        raise BadInput(f"{file.name} is a database in use, not a backup; `tidings backup FILE` takes one")
    return int(taken_at)


def _copy_file(database: Database, part: Path, progress: Progress) -> int:
    """Copy a SQLite file page by page."""
    assert database.file is not None
    source, target = open_read_only(database.file), apsw.Connection(str(part))
    try:
        # Without an open snapshot the copy would start again whenever a process writes; writers do not wait for it.
        source.execute("BEGIN")
        rows = sum(count_rows(SqliteTx(source)).values())
        taken_at = read_clock(database)
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
    """Copy every table of a server into a new SQLite file."""
    fresh = connect(f"sqlite:///{part}", durability="crash-safe")
    migrate(fresh)
    fresh.close()
    target = apsw.Connection(str(part))
    try:
        # What a crash leaves is a `.part` file, which is thrown away. The finished file is synced as a whole.
        target.execute("PRAGMA synchronous = OFF")
        target.execute("BEGIN")
        into, rows = SqliteTx(target), 0
        with database.reading() as tx:
            taken_at = read_clock(database)
            for count in copy_all(tx, into, tables_of(into)):
                progress(rows := rows + count, None)
            copy_last_drawn(tx, into, into.rows(str, "numbered_tables"))
        target.execute("COMMIT")
        _sign(target, taken_at)
    finally:
        target.close()
    return rows


def _sign(target: apsw.Connection, taken_at: int) -> None:
    """Make the copy a backup: one file, no marks of running processes, when it was taken, and what it holds."""
    # A write-ahead log would make the backup two files, of which people copy one.
    list(target.execute("PRAGMA journal_mode = DELETE"))
    tx = SqliteTx(target)
    tx.run("drop_marks", pattern=f"{MARK}%")
    tx.run("sign_backup", taken_at=str(taken_at))
    with target:
        write_digests(tx)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
