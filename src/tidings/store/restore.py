"""Brings a backup back: into an empty database, all or nothing, and nothing is sent by itself afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from tidings.model.errors import BadInput, Misconfigured, StoreUnavailable
from tidings.store.backup import Backup, Progress
from tidings.store.checks import open_read_only
from tidings.store.copying import (
    draw_beyond,
    drawn,
    numbered_tables,
    put_documents,
    put_rows,
    read_documents,
    read_rows,
    tables_of,
)
from tidings.store.database import Database, Tx, connect
from tidings.store.migrate import migrate, refuse_foreign
from tidings.store.postgres import PostgresTx
from tidings.store.sqlite import SqliteTx, translated
from tidings.store.statements import migrations

TOKEN_LEAP = 1_000
"""Added to every lease token: no worker that outlived the restore can hold one that is drawn again."""
PARKED = "restored: review before sending"
_UNSENT = "kind = 'delivery' AND standing IN ('open', 'parked')"


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
            _refuse_occupied(tx, tables_of(source), database)
            _copy_all(source, tx, lambda done: progress(done, backup.rows))
            unfinished, leases, parked = _make_safe(tx)
    return Restored(backup.taken_at, backup.items, backup.rows, unfinished, leases, parked)


def _copy_all(source: apsw.Connection, tx: Tx, progress: Callable[[int], None]) -> None:
    if isinstance(tx, PostgresTx):
        tx.take_time()
    done = 0
    for table, columns in tables_of(source).items():
        for batch in read_rows(source, table, columns):
            put_rows(tx, table, columns, batch)
            progress(done := done + len(batch))
    for batch in read_documents(source):
        put_documents(tx, batch)
        progress(done := done + len(batch))
    for table in numbered_tables(source):
        draw_beyond(tx, table, drawn(SqliteTx(source), table))


def _make_safe(tx: Tx) -> tuple[int, int, int]:
    """End every lease, and leave what was not sent to a person: it may have been sent since the backup."""
    unfinished = tx.sql("SELECT count(*) FROM items WHERE standing = 'open' AND kind <> 'delivery'", {})[0][0]
    leases = tx.sql("SELECT count(*) FROM items WHERE lease_until IS NOT NULL", {})[0][0]
    leap = {"leap": TOKEN_LEAP}
    ended = "lease_owner = NULL, lease_until = NULL, lease_token = lease_token + :leap"
    tx.sql(f"UPDATE items SET {ended}", leap)  # noqa: S608  # a constant
    tx.sql(f"UPDATE schedules SET {ended}", leap)  # noqa: S608  # a constant
    tx.sql("UPDATE limiters SET held_until = 0, token = token + :leap", leap)
    # What was set aside has probably been spent.
    tx.sql("UPDATE budgets SET spent = spent + reserved, reserved = 0", {})
    return unfinished, leases, _park_unsent(tx)


def _park_unsent(tx: Tx) -> int:
    reason = {"reason": PARKED}
    count = tx.sql(f"SELECT count(*) FROM items WHERE {_UNSENT}", {})[0][0]  # noqa: S608  # a constant
    tx.sql(
        "INSERT INTO journal (item, at, kind, token, attempt, from_state, to_state, ended, error, actor) "  # noqa: S608
        "SELECT id, tidings_now(), 'manual', lease_token, 0, state, state, 'parked', :reason, 'restore' "
        f"FROM items WHERE {_UNSENT}",
        reason,
    )
    tx.sql(
        "UPDATE items SET standing = 'parked', due_at = NULL, last_error = :reason, cause = :reason, "  # noqa: S608
        f"changed_at = tidings_now() WHERE {_UNSENT}",
        reason,
    )
    return int(count)


def _refuse_occupied(tx: Tx, tables: Iterable[str], database: Database) -> None:
    for table in tables:
        if tx.sql(f"SELECT 1 FROM {table} LIMIT 1", {}):  # noqa: S608  # our own names
            raise BadInput(
                f"{database.describe()} is not empty ({table} has rows); a backup is restored only into an empty "
                "database: move the old one away, or name another in database_url"
            )


@contextmanager
def _up_to_date(file: Path) -> Iterator[apsw.Connection]:
    """Open a backup in today's schema: of an older one a copy is brought up to date, the file itself stays as it is."""
    with ExitStack() as open_until_the_end:
        if _is_older(file):
            folder = open_until_the_end.enter_context(tempfile.TemporaryDirectory(prefix="tidings-restore-"))
            file = _upgraded(file, Path(folder))
        source = open_read_only(file)
        open_until_the_end.callback(source.close)
        yield source


def _is_older(file: Path) -> bool:
    connection = open_read_only(file)
    try:
        applied: dict[int, str] = dict(connection.execute("SELECT number, checksum FROM migrations"))
        refuse_foreign(applied, migrations("sqlite"))
    except Misconfigured as error:
        raise StoreUnavailable(f"{file.name}: {error}") from None
    finally:
        connection.close()
    return len(applied) < len(migrations("sqlite"))


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
