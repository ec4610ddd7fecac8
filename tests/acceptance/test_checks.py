"""A sound database is never declared damaged, however busy others are with it; real damage is found all the same."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import apsw
import pytest
from tests.acceptance.example_processes import started
from tests.support.engine import Engine
from tests.support.example import pipeline, thing
from tests.support.own_sql import own_sql
from tests.support.waiting import until

from tidings.store.db.database import connect
from tidings.store.upkeep.migrate import migrate
from tidings.store.upkeep.preflight import MARK, vet

STARTS = 300
THINGS = 3


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database that a process which is no more left behind: every start checks it in full."""
    file = tmp_path / "tidings.db"
    database = connect(f"sqlite:///{file}", durability="crash-safe")
    migrate(database)
    with database.transaction() as tx:
        own_sql(tx, "INSERT INTO meta (name, value) VALUES (:name, 'elsewhere 1 0')", {"name": f"{MARK}gone"})
    database.close()
    return file


async def test_a_sound_database_is_sound_beside_busy_writers(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with contextlib.AsyncExitStack() as running:
        shares = [("rewrite", url, str(first), str(THINGS)) for first in (0, THINGS)]
        writers = [await running.enter_async_context(started(*share)) for share in shares]
        await until(lambda: all(writer.said for writer in writers))
        before = _changes(file)
        for _ in range(STARTS):
            (note,) = await asyncio.to_thread(vet, url)
            assert "is sound" in note
            assert all(writer.is_alive for writer in writers)
        assert _changes(file) > before, "nobody wrote meanwhile: nothing was shown"


def _changes(file: Path) -> int:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    (count,) = next(iter(connection.execute("SELECT max(id) FROM journal")))
    connection.close()
    assert isinstance(count, int)
    return count


async def _fill(file: Path) -> None:
    async with Engine(f"sqlite:///{file}", [pipeline()]) as engine:
        engine.store.intake.append("example", [thing(f"t{number}") for number in range(20)])
        await engine.work_until_idle()
