"""What was acknowledged survives the loss of power: synced before the answer, and there after any cut."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw
import psycopg
import pytest
from tests.contract.power_cuts import WatchedDisk, watched_disk
from tests.support import example
from tests.support.example import thing
from tests.support.own_sql import own_sql
from tests.support.postgres import new_postgres_database

from tidings.store.db.database import Database, Durability, connect
from tidings.store.db.executor import StoreExecutor
from tidings.store.store import Store, open_store
from tidings.store.upkeep.migrate import migrate

IS_FULL = os.environ.get("TIDINGS_STORM") == "full"
pytestmark = pytest.mark.storm
CUTS = 400 if IS_FULL else 40
ROUNDS = 12
PIPELINES = {"example": example.pipeline()}


@contextmanager
def a_store(url: str, durability: Durability) -> Iterator[Store]:
    database = connect(url, durability=durability)
    try:
        migrate(database)
        yield open_store(database, PIPELINES)
    finally:
        database.close()


# SQLite: what the disk is asked for.


class Acknowledged(NamedTuple):
    """A key whose sender was answered, and how many operations the disk had seen by then."""

    key: str
    moment: int


async def uploads(store: Store, disk: WatchedDisk) -> list[Acknowledged]:
    """Append as a server does, several senders at once; in between the log is copied to its places, or is not."""
    answers: list[Acknowledged] = []
    executor = StoreExecutor(store.database)

    async def send(key: str) -> None:
        await executor.write(store.intake.append, "example", [thing(key, key * 40)])
        answers.append(Acknowledged(key, len(disk.operations)))

    for number in range(ROUNDS):
        await asyncio.gather(*(send(f"{number}-{sender}") for sender in range(3)))
        if number % 4 == 3:
            await executor.write(store.intake.merge, "example")
            copy_log(disk.database, truncate=number % 8 == 7)
    await asyncio.to_thread(executor.close)
    return answers


def copy_log(database: Path, *, truncate: bool) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        connection.wal_checkpoint(mode=mode)


def kept_after(cut: Path) -> set[str]:
    """Open what a power cut left, as the next start does, and return the keys of all it knows."""
    with a_store(f"sqlite:///{cut}", "power-safe") as store, store.database.reading() as tx:
        assert own_sql(tx, "PRAGMA integrity_check") == [("ok",)]
        return {key for (key,) in own_sql(tx, "SELECT key FROM intake UNION SELECT key FROM items")}


async def lost_by_cuts(tmp_path: Path, durability: Durability) -> int:
    """Cut the power at many moments, behind every answer among them; return how many acknowledged keys are missing."""
    database = tmp_path / "tidings.db"
    with a_store(f"sqlite:///{database}", durability):
        pass
    with watched_disk(database) as disk, a_store(f"sqlite:///{database}", durability) as store:
        answers = await uploads(store, disk)
    rng = random.Random(durability)
    moments = [answer.moment for answer in answers]
    moments += [rng.randint(0, len(disk.operations)) for _ in range(CUTS - len(moments))]
    lost = 0
    for number, moment in enumerate(moments):
        kept = kept_after(disk.cut(moment, tmp_path / f"cut{number}", rng))
        lost += len({answer.key for answer in answers if answer.moment <= moment} - kept)
    return lost


async def test_no_power_cut_loses_what_was_acknowledged(tmp_path: Path) -> None:
    assert await lost_by_cuts(tmp_path, "power-safe") == 0


async def test_crash_safe_gives_up_the_last_moments_and_nothing_else(tmp_path: Path) -> None:
    """The documented price of this mode; and the proof that the cuts above would find a loss. Nothing is damaged."""
    assert await lost_by_cuts(tmp_path, "crash-safe") > 0


@pytest.mark.parametrize(("durability", "is_synced"), [("power-safe", True), ("crash-safe", False)])
def test_an_answer_means_synced_only_where_power_cuts_count(
    tmp_path: Path, durability: Durability, is_synced: bool
) -> None:
    database = tmp_path / "tidings.db"
    with a_store(f"sqlite:///{database}", durability):
        pass
    with watched_disk(database) as disk, a_store(f"sqlite:///{database}", durability) as store:
        store.intake.append("example", [thing("first")])
        for number in range(10):
            before = len(disk.operations)
            store.intake.append("example", [thing(f"{number}")])
            asked = disk.operations[before:]
            assert any(operation.kind == "write" for operation in asked)
            assert (disk.unsynced(asked) == 0) is is_synced


# PostgreSQL: what the server was told, and what it has flushed.


def lsn(connection: psycopg.Connection[tuple[int]], name: str) -> int:
    """Return a place in the server's log as a number."""
    row = connection.execute(f"SELECT ({name}() - '0/0'::pg_lsn)::bigint").fetchone()
    assert row is not None
    return int(row[0])


def count_flushed(store: Store, connection: psycopg.Connection[tuple[int]], appends: int = 20) -> int:
    """Count the appends whose COMMIT was on the disk when they were answered."""
    flushed = 0
    for number in range(appends):
        with store.database.transaction():
            store.intake.append("example", [thing(f"{number}")])
            written = lsn(connection, "pg_current_wal_insert_lsn")
        flushed += lsn(connection, "pg_current_wal_flush_lsn") > written
    return flushed


def setting(database: Database) -> str:
    with database.transaction() as tx:
        return str(own_sql(tx, "SHOW synchronous_commit")[0][0])


@pytest.fixture
def careless_url(postgres_server: str) -> str:
    """A database whose administrator switched synchronous commits off for everybody."""
    url = new_postgres_database(postgres_server)
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    return url


def test_an_append_is_answered_once_the_server_has_flushed_it(careless_url: str) -> None:
    with a_store(careless_url, "power-safe") as store, psycopg.connect(careless_url, autocommit=True) as watching:
        assert setting(store.database) == "on"
        assert count_flushed(store, watching) == 20


def test_crash_safe_does_not_wait_for_the_servers_disk(careless_url: str) -> None:
    """It shows too that the count above would see the difference."""
    with a_store(careless_url, "crash-safe") as store, psycopg.connect(careless_url, autocommit=True) as watching:
        assert setting(store.database) == "off"
        assert count_flushed(store, watching) < 20
