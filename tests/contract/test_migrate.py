"""Migrations: numbered, checksummed, one at a time; a newer or altered schema is refused untouched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.own_sql import own_sql
from tests.support.store import Ground

from tidings.model.errors import Misconfigured
from tidings.store.db.database import connect
from tidings.store.upkeep.migrate import check_schema, migrate

OpenGround = Callable[..., Ground]


def schema(database: Any) -> list[tuple[Any, ...]]:
    if database.dialect == "sqlite":
        sql = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
    else:
        sql = (
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
            "WHERE table_schema = 'public' UNION ALL SELECT tablename, indexname, indexdef, '' FROM pg_indexes "
            "WHERE schemaname = 'public' UNION ALL SELECT 'function', proname, prosrc, '' FROM pg_proc "
            "WHERE pronamespace = 'public'::regnamespace ORDER BY 1, 2, 3"
        )
    with database.reading() as tx:
        return [tuple(row) for row in own_sql(tx, sql)]


def test_migrating_again_does_nothing(ground: Ground) -> None:
    before, rows = schema(ground.database), ground.dump()

    assert migrate(ground.database) == []
    assert check_schema(ground.database) is None
    assert (schema(ground.database), ground.dump()) == (before, rows)


def test_a_newer_schema_is_refused_with_a_clear_sentence(ground: Ground) -> None:
    ground.write("INSERT INTO migrations (number, name, checksum, applied_at) VALUES (9000, 'future', 'x', 0)")
    before = ground.dump()

    with pytest.raises(Misconfigured, match=r"written by a newer tidings \(schema 9000, known here: \d+\); upgrade"):
        migrate(ground.database)

    assert ground.dump() == before
    assert "newer tidings" in (check_schema(ground.database) or "")


def test_an_altered_migration_is_refused(ground: Ground) -> None:
    ground.write("UPDATE migrations SET checksum = 'altered' WHERE number = 1")
    before = ground.dump()

    with pytest.raises(Misconfigured, match=r"migration 1 .* differs from the released one"):
        migrate(ground.database)

    assert ground.dump() == before


def test_an_empty_database_says_what_helps(empty_database_url: str) -> None:
    database = connect(empty_database_url)
    try:
        assert "tidings db migrate" in (check_schema(database) or "")
        migrate(database)
        assert check_schema(database) is None
    finally:
        database.close()


def test_many_processes_migrating_at_once_do_it_once(empty_database_url: str) -> None:
    databases = [connect(empty_database_url) for _ in range(4)]
    try:
        with ThreadPoolExecutor(4) as pool:
            applied = list(pool.map(migrate, databases))
        assert sorted(map(len, applied))[:3] == [0, 0, 0]
        assert max(map(len, applied)) >= 1
    finally:
        for database in databases:
            database.close()


KILLED = """
import os, signal, sys
from tidings.store.db.database import connect
from tidings.store.upkeep.migrate import migrate
database = connect(sys.argv[1])
with database.transaction():
    migrate(database)
    print("about to die", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_migration_is_rerun_to_the_same_schema(
    empty_database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    died = subprocess.run(
        [sys.executable, "-c", KILLED, empty_database_url], capture_output=True, text=True, check=False
    )
    assert died.returncode == -9, died.stderr
    assert "about to die" in died.stdout
    database = connect(empty_database_url)
    try:
        assert check_schema(database) is not None
        assert migrate(database)
        assert check_schema(database) is None
        mended = schema(database)
    finally:
        database.close()

    fresh = connect(
        f"sqlite:///{tmp_path / 'fresh.db'}" if empty_database_url.startswith("sqlite") else another(request)
    )
    try:
        migrate(fresh)
        assert schema(fresh) == mended
    finally:
        fresh.close()


def another(request: pytest.FixtureRequest) -> str:
    from tests.support.postgres import new_postgres_database

    return new_postgres_database(request.getfixturevalue("postgres_server"))
