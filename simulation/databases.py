"""Fresh databases for seeds: a SQLite file copied from a template, or a PostgreSQL database emptied each time."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.support.own_sql import own_sql

from simulation.clock import VirtualClock
from tidings.store.db.database import Database, connect
from tidings.store.db.sqlite import SqliteDatabase
from tidings.store.upkeep.migrate import migrate

MEMORY = Path("/dev/shm")
"""A file there costs no disk."""


class SqliteFactory:
    """A folder with a migrated template; every seed gets a copy."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="simulation", dir=MEMORY if MEMORY.is_dir() else None)
        self._template = Path(self._folder.name) / "template.db"
        database = SqliteDatabase(str(self._template), durability="crash-safe")
        migrate(database)
        database.close()

    def connect(self, clock: VirtualClock) -> SqliteDatabase:
        """Return a fresh database on a clock."""
        folder = Path(self._folder.name)
        for old in folder.glob("seed.db*"):
            old.unlink()
        path = folder / "seed.db"
        shutil.copy(self._template, path)
        return SqliteDatabase(str(path), durability="crash-safe", clock=clock)

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()


class PostgresFactory:
    """One migrated database, emptied for every seed. Its clock is the server's, moved to ours before each call."""

    def __init__(self, url: str) -> None:
        self._url = url
        database = connect(url, durability="crash-safe")
        migrate(database)
        database.close()

    def connect(self, _clock: VirtualClock) -> Database:
        """Return the emptied database."""
        database = connect(self._url, durability="crash-safe")
        with database.transaction() as tx:
            names = [row[0] for row in own_sql(tx, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
            emptied = ", ".join(name for name in names if name not in ("meta", "migrations"))
            own_sql(tx, f"TRUNCATE {emptied} RESTART IDENTITY", {})
        return database
