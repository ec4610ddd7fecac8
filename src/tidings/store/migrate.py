"""Numbered migrations, forward only, checksummed, one holder at a time."""

from __future__ import annotations

from hashlib import sha256

from tidings.model.errors import Misconfigured
from tidings.store.database import Database, Tx
from tidings.store.statements import migrations

_TABLE = """CREATE TABLE IF NOT EXISTS migrations (
    number {integer} PRIMARY KEY, name {text} NOT NULL, checksum {text} NOT NULL, applied_at {integer} NOT NULL)"""

_RECORD = (
    "INSERT INTO migrations (number, name, checksum, applied_at) VALUES (:number, :name, :checksum, tidings_now())"
)


def migrate(database: Database) -> list[int]:
    """Bring the schema up to date; return the numbers applied. A newer or altered schema is refused untouched."""
    known = migrations(database.dialect)
    with database.transaction() as tx:
        database.lock(tx, "migrate")
        _create_table(tx, database.dialect)
        applied: dict[int, str] = dict(tx.sql("SELECT number, checksum FROM migrations", {}))
        refuse_foreign(applied, known)
        fresh = []
        for number, name, text in known:
            if number in applied:
                continue
            _apply(tx, database.dialect, text)
            tx.sql(_RECORD, {"number": number, "name": name, "checksum": _checksum(text)})
            fresh.append(number)
    return fresh


def check_schema(database: Database) -> str | None:
    """Say what is wrong with the schema, or None."""
    known = migrations(database.dialect)
    with database.reading() as tx:
        if not _has_table(tx, database.dialect):
            return "the database has no schema yet: run `tidings db migrate`"
        applied: dict[int, str] = dict(tx.sql("SELECT number, checksum FROM migrations", {}))
    try:
        refuse_foreign(applied, known)
    except Misconfigured as error:
        return str(error)
    if missing := [n for n, _, _ in known if n not in applied]:
        return f"migrations {missing} are missing: run `tidings db migrate`"
    return None


def _create_table(tx: Tx, dialect: str) -> None:
    types = {"integer": "INTEGER", "text": "TEXT"} if dialect == "sqlite" else {"integer": "bigint", "text": "text"}
    tx.sql(_TABLE.format(**types), {})


def _has_table(tx: Tx, dialect: str) -> bool:
    if dialect == "sqlite":
        return bool(tx.sql("SELECT 1 FROM sqlite_master WHERE name = 'migrations'", {}))
    return bool(tx.sql("SELECT 1 WHERE to_regclass('migrations') IS NOT NULL", {}))


def refuse_foreign(applied: dict[int, str], known: list[tuple[int, str, str]]) -> None:
    """Refuse a schema that a newer tidings wrote, or that is not the released one."""
    newest = known[-1][0]
    if newer := [n for n in applied if n > newest]:
        raise Misconfigured(
            f"the database was written by a newer tidings (schema {max(newer)}, known here: {newest}); upgrade tidings"
        )
    for number, name, text in known:
        if number in applied and applied[number] != _checksum(text):
            raise Misconfigured(
                f"migration {number} ({name}) of this database differs from the released one; restore a backup"
            )


def _apply(tx: Tx, dialect: str, text: str) -> None:
    if dialect == "postgres":
        tx.connection.execute(text)  # type: ignore[attr-defined]  # many statements, no parameters
        return
    tx.sql(text, {})


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()
