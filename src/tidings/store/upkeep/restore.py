"""Restores a backup into an empty database, all or nothing; nothing is sent by itself afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tidings.model.errors import BadInput, Misconfigured, StoreUnavailable
from tidings.store.db.database import Database, Tx, connect
from tidings.store.db.sqlite import translated
from tidings.store.db.sqlite_tx import SqliteTx
from tidings.store.db.statements import migrations
from tidings.store.replicas import ReplicaNotes
from tidings.store.upkeep.backup import Backup, Progress
from tidings.store.upkeep.migrate import migrate, read_applied, refuse_foreign
from tidings.store.upkeep.preflight import MARK, open_read_only
from tidings.store.upkeep.tables import copy_all, copy_last_drawn, count_rows, tables_of

TOKEN_LEAP = 1_000
"""Added to every lease token: no worker that outlived the restore can hold one that is drawn again."""
PARKED = "restored: review before sending"


class Unfinished(NamedTuple):
    """What was going on when the backup was taken: items not at rest, and leases."""

    items: int
    leases: int


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did, for the operator to judge."""

    taken_at: int
    items: int
    rows: int
    unfinished: int
    """Items that were not at rest; whatever was done with them after the backup is done again."""
    leases: int
    deliveries_parked: int


def restore_backup(backup: Backup, database: Database, *, progress: Progress = lambda *_: None) -> Restored:
    """Copy a backup, as `verify` returned it, into an empty database; end leases, park what was not sent.

    It happens in one transaction, and nothing is written before the backup is known to be whole.
    """
    file = Path(backup.file)
    with _up_to_date(file) as source, translated(str(file)):
        migrate(database)
        with database.transaction() as tx:
            database.lock(tx, "migrate")
            # One statement copies a whole table; the usual limit of 5 s would end it.
            tx.take_time()
            tables = tables_of(source)
            _refuse_occupied(tx, tables, database)
            done = 0
            for count in copy_all(source, tx, tables):
                progress(done := done + count, backup.rows)
            copy_last_drawn(source, tx, source.rows(str, "numbered_tables"))
            unfinished = tx.row(Unfinished, "count_unfinished")
            parked = _make_safe(tx)
    assert unfinished is not None
    return Restored(backup.taken_at, backup.items, backup.rows, unfinished.items, unfinished.leases, parked)


def adopt_copy(file: Path, url: str, taken_at: int) -> Restored:
    """Make a file that was copied while everything ran fit for a start: as after a restore, nothing is sent by itself.

    The copy goes on where it came from: its place is noted, so that the next start writes there and to no other's.
    """
    database = connect(f"sqlite:///{file}")
    try:
        migrate(database)
        with database.transaction() as tx:
            tx.take_time()
            tx.run("drop_marks", pattern=f"{MARK}%")
            unfinished = tx.row(Unfinished, "count_unfinished")
            parked = _make_safe(tx)
        ReplicaNotes(database).put(url)
    finally:
        database.close()
    with closing(open_read_only(file)) as connection:
        rows = count_rows(SqliteTx(connection))
    assert unfinished is not None
    return Restored(taken_at, rows["items"], sum(rows.values()), unfinished.items, unfinished.leases, parked)


def _make_safe(tx: Tx) -> int:
    """End every lease and park the deliveries that may have been sent since the backup; return how many these are."""
    for name in ("leap_items", "leap_schedules", "leap_limiters"):
        tx.run(name, leap=TOKEN_LEAP)
    # Set aside for calls that were under way. Whether they were made is unknown, so they count as made.
    tx.run("spend_reserved")
    tx.run("journal_unsent", reason=PARKED)
    return tx.run("park_unsent", reason=PARKED)


def _refuse_occupied(tx: Tx, tables: dict[str, list[str]], database: Database) -> None:
    for table, columns in tables.items():
        with closing(tx.scan(table, columns)) as rows:
            if next(rows, None) is not None:
                raise BadInput(
                    f"{database.describe()} is not empty ({table} has rows); a backup is restored only into an empty "
                    "database: move the old one away, or name another in database_url"
                )


@contextmanager
def _up_to_date(file: Path) -> Iterator[SqliteTx]:
    """Open a backup in today's schema: of an older one a copy is brought up to date, the file itself stays as it is."""
    with ExitStack() as open_until_the_end:
        if _is_older(file):
            folder = open_until_the_end.enter_context(tempfile.TemporaryDirectory(prefix="tidings-restore-"))
            file = _upgraded(file, Path(folder))
        yield SqliteTx(open_until_the_end.enter_context(closing(open_read_only(file))))


def _is_older(file: Path) -> bool:
    known = migrations("sqlite")
    with closing(open_read_only(file)) as connection:
        applied = read_applied(SqliteTx(connection))
    try:
        refuse_foreign(applied, known)
    except Misconfigured as error:
        raise StoreUnavailable(f"{file.name}: {error}") from None
    return len(applied) < len(known)


def _upgraded(file: Path, folder: Path) -> Path:
    copy = folder / file.name
    try:
        shutil.copyfile(file, copy)
    except OSError as error:
        raise StoreUnavailable(f"{file.name} cannot be copied to {folder}: {error.strerror}") from None
    database = connect(f"sqlite:///{copy}", durability="crash-safe")
    try:
        migrate(database)
    finally:
        database.close()
    return copy
