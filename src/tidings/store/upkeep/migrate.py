"""Numbered migrations: forward only, checksummed, and by one process at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from tidings.model.errors import Misconfigured
from tidings.store.db.database import Database, Tx
from tidings.store.db.statements import Migration


class AppliedMigration(NamedTuple):
    """A migration that a database has gone through."""

    number: int
    checksum: str


def migrate(database: Database) -> list[int]:
    """Bring the schema up to date; return the numbers applied. A newer or altered schema is refused untouched."""
    if check_schema(database) is None:
        return []  # a user that may only read can look at a schema that is up to date
    known, numbers = database.migrations(), []
    with database.transaction() as tx:
        database.lock(tx, "migrate")
        # Of two processes that start together, the second waits for the lock and then finds everything applied.
        tx.run("create_migrations")
        applied = read_applied(tx)
        refuse_foreign(applied, known)
        for migration in known:
            if migration.number not in applied:
                tx.run_script(migration.text)
                checksum = _checksum(migration.text)
                tx.run("record_migration", number=migration.number, name=migration.name, checksum=checksum)
                numbers.append(migration.number)
    return numbers


def check_schema(database: Database) -> str | None:
    """Say what is wrong with the schema, or None."""
    known = database.migrations()
    with database.reading() as tx:
        if "migrations" not in tx.rows(str, "tables"):
            return "the database has no schema yet: run `tidings db migrate`"
        applied = read_applied(tx)
    try:
        refuse_foreign(applied, known)
    except Misconfigured as error:
        return str(error)
    if missing := [migration.number for migration in known if migration.number not in applied]:
        return f"migrations {missing} are missing: run `tidings db migrate`"
    return None


def read_applied(tx: Tx) -> dict[int, str]:
    """Return the checksums of the applied migrations by number."""
    return {migration.number: migration.checksum for migration in tx.rows(AppliedMigration, "applied_migrations")}


def refuse_foreign(applied: Mapping[int, str], known: Sequence[Migration]) -> None:
    """Refuse a schema that a newer tidings wrote, or that is not the released one."""
    newest = known[-1].number
    if newer := [number for number in applied if number > newest]:
        raise Misconfigured(
            f"the database was written by a newer tidings (schema {max(newer)}, known here: {newest}); upgrade tidings"
        )
    for number, name, text in known:
        if number in applied and applied[number] != _checksum(text):
            raise Misconfigured(
                f"migration {number} ({name}) of this database differs from the released one; restore a backup"
            )


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()
