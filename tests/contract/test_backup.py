"""Backups are one snapshot, taken while everything runs; a restore gives the same content and sends nothing."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.support.engine import Engine, discord_channel
from tests.support.example import pipeline, thing
from tests.support.own_sql import own_sql
from tests.support.postgres import new_postgres_database

from tidings.model.errors import BadInput, StoreUnavailable
from tidings.model.publication import Notice, Route
from tidings.store.db.database import Database, connect
from tidings.store.db.sqlite_tx import SqliteTx
from tidings.store.upkeep.backup import verify, write_backup
from tidings.store.upkeep.digests import write_digests
from tidings.store.upkeep.migrate import migrate
from tidings.store.upkeep.preflight import marked
from tidings.store.upkeep.restore import PARKED, restore_backup

CHANNEL = discord_channel("room", "https://discord.com/api/webhooks/1/a-token")
TABLES = (
    "intake", "checkpoints", "cursors", "items", "bodies", "links", "journal", "tombstones", "shelf", "shelf_versions",
    "tokens", "pauses", "caches", "budgets", "runs", "schedules",
)  # fmt: skip


def an_engine(url: str) -> Engine:
    announcing = pipeline(announce={"thing": lambda work: (Notice(title=work.key),)})
    return Engine(url, [announcing], channels=[CHANNEL], routes=[Route("example", "room")])


async def work(engine: Engine) -> None:
    """Merge and process, but send nothing."""
    while engine.store.intake.merge("example").read:
        pass
    await engine.app.worker(only_lane="pure").until_idle()


async def filled(engine: Engine, count: int = 60) -> None:
    """Leave some of everything behind: shown, unmerged, leased and dead things, deliveries, a token, a pause."""
    fates = ["", "", "", "die", "reject"]
    engine.store.intake.append(
        "example", [thing(f"t{n}", f"Ünïcode {n}", fate=fates[n % 5]) for n in range(count)], source="example.upload"
    )
    await work(engine)
    engine.store.tokens.create("me", "read")
    engine.store.pauses.pause("source:example.things", "for the test")
    engine.store.caches.put("http", "a", b"\x00\xff", 600)
    engine.store.budgets.reserve("tokens", 10, 100)
    engine.store.items.claim("example", "notify", 1, "doomed", 900)
    engine.store.intake.append("example", [thing("waiting")])


def content(database: Database, tables: Sequence[str] = TABLES) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    with database.reading() as tx:
        for table in tables:
            rows = [
                tuple(bytes(v) if isinstance(v, memoryview) else v for v in row)
                for row in own_sql(tx, f"SELECT * FROM {table}", {})
            ]
            found[table] = sorted(rows, key=repr)
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def other_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a backup is brought back, once for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'other.db'}"
    return new_postgres_database(request.getfixturevalue("postgres_server"))


async def test_a_backup_comes_back_the_same_in_either_database(
    database_url: str, other_url: str, tmp_path: Path
) -> None:
    async with an_engine(database_url) as engine:
        await filled(engine)
        before = content(engine.app.database)
        searched = {hit.key for hit in engine.search("ünïcode", limit=500)}
        backup = write_backup(engine.app.database, tmp_path / "kept.db")
        assert backup.items == len(before["items"])
        assert content(engine.app.database) == before

    target = connect(other_url)
    restored = restore_backup(verify(tmp_path / "kept.db"), target)
    after = content(target)
    target.close()
    # The parts a restore must not change are equal, row by row.
    for table in ("intake", "checkpoints", "cursors", "bodies", "links", "tombstones", "shelf", "tokens", "pauses"):
        assert after[table] == before[table], table
    assert restored.items == backup.items
    async with an_engine(other_url) as engine:
        assert {hit.key for hit in engine.search("ünïcode", limit=500)} == searched
        assert len(searched) == 36
        # Numbers go on where they were: a finding behind the checkpoint would never be merged.
        engine.store.intake.append("example", [thing("later")])
        await work(engine)
        assert engine.item("thing", "later").item.state == "shown"
        assert engine.item("thing", "waiting").item.state == "shown"


async def test_a_restore_ends_leases_and_parks_what_was_not_sent(database_url: str, tmp_path: Path) -> None:
    async with an_engine(database_url) as engine:
        await filled(engine)
        tokens = {row[0]: row[1] for row in _rows(engine.app.database, "SELECT id, lease_token FROM items")}
        write_backup(engine.app.database, tmp_path / "kept.db")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    target = connect(other)
    restored = restore_backup(verify(tmp_path / "kept.db"), target)
    target.close()
    async with an_engine(other) as engine:
        deliveries = engine.items("delivery")
        assert restored.deliveries_parked == len(deliveries) == 36
        assert {(d.standing, d.cause) for d in deliveries} == {("parked", PARKED)}
        assert not _rows(engine.app.database, "SELECT 1 FROM items WHERE lease_until IS NOT NULL")
        raised = {row[0]: row[1] for row in _rows(engine.app.database, "SELECT id, lease_token FROM items")}
        assert raised.keys() == tokens.keys()
        assert all(raised[item] >= token + 1_000 for item, token in tokens.items()), "more than were drawn since"
        assert engine.store.items.claim("example", "notify", 10, "eager", 60) == []
        assert engine.item("delivery", deliveries[0].key).life[-1].actor == "restore"
        assert engine.store.budgets.today()[0].reserved == 0
        # A person looks, and lets one go.
        assert engine.store.operations.revive(item=deliveries[0].id, actor="test") == 1
        assert len(engine.store.items.claim("example", "notify", 10, "eager", 60)) == 1


async def test_a_backup_under_load_is_one_snapshot(database_url: str, tmp_path: Path) -> None:
    """Each backup taken while things are appended and worked on keeps the promises of a snapshot."""
    async with an_engine(database_url) as engine:
        stop = asyncio.Event()
        accepted = 0

        async def append() -> None:
            nonlocal accepted
            while not stop.is_set():
                page = [thing(f"load{accepted + n}") for n in range(20)]
                await engine.app.executor.write(engine.store.intake.append, "example", page)
                accepted += len(page)
                await engine.app.executor.write(engine.store.intake.merge, "example")

        worker = engine.app.worker(only_lane="pure")
        busy = [asyncio.create_task(append()), asyncio.create_task(worker.run(stop))]
        for turn in range(5):
            while accepted < turn * 400:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            file, heard = tmp_path / f"{turn}.db", accepted
            await asyncio.to_thread(write_backup, engine.app.database, file)
            assert heard <= _accepted_in(file) <= accepted + 20
            _assert_consistent(file)
        stop.set()
        await asyncio.gather(*busy)
        await work(engine)
        write_backup(engine.app.database, tmp_path / "last.db")
        kept = connect(f"sqlite:///{tmp_path / 'last.db'}")
        assert content(kept) == content(engine.app.database)
        kept.close()


def _accepted_in(file: Path) -> int:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    ((accepted,),) = connection.execute(
        "SELECT (SELECT count(*) FROM items WHERE kind = 'thing') + "
        "(SELECT count(*) FROM intake WHERE id > coalesce((SELECT checkpoint FROM checkpoints), 0))"
    )
    connection.close()
    return int(str(accepted))


def _assert_consistent(file: Path) -> None:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    wrong_states = connection.execute(
        "SELECT count(*) FROM items i JOIN journal j ON j.id = (SELECT max(id) FROM journal WHERE item = i.id) "
        "WHERE j.to_state <> i.state"
    ).fetchall()
    unshown = connection.execute(
        "SELECT count(*) FROM items WHERE state = 'shown' AND id NOT IN (SELECT id FROM shelf)"
    ).fetchall()
    undelivered = connection.execute(
        "SELECT count(*) FROM items p WHERE p.state = 'shown' AND NOT EXISTS "
        "(SELECT 1 FROM items d WHERE d.kind = 'delivery' AND d.key = 'room/thing/' || p.key || '/1')"
    ).fetchall()
    unbodied = connection.execute("SELECT count(*) FROM items WHERE id NOT IN (SELECT item FROM bodies)").fetchall()
    connection.close()
    assert [wrong_states, unshown, undelivered, unbodied] == [[(0,)]] * 4


def test_a_backup_is_private_and_never_overwrites_unasked(database_url: str, tmp_path: Path) -> None:
    database = connect(database_url)
    migrate(database)
    with marked(database):
        write_backup(database, tmp_path / "kept.db")
    assert stat.S_IMODE((tmp_path / "kept.db").stat().st_mode) == 0o600
    assert {p.name for p in tmp_path.iterdir() if p.name.startswith("kept")} == {"kept.db"}
    with pytest.raises(BadInput, match="exists already"):
        write_backup(database, tmp_path / "kept.db")
    write_backup(database, tmp_path / "kept.db", replace=True)
    with pytest.raises(BadInput, match="is a folder"):
        write_backup(database, tmp_path, replace=True)
    with pytest.raises(BadInput, match="cannot be written"):
        write_backup(database, tmp_path / "nowhere" / "kept.db")
    database.close()
    kept = apsw.Connection(str(tmp_path / "kept.db"))
    assert [row[0] for row in kept.execute("SELECT name FROM meta")] == ["backup_taken_at", "stream"]
    kept.close()


async def test_a_restore_refuses_an_occupied_target_and_bad_backups(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.db"
    async with an_engine(database_url) as engine:
        await filled(engine, 5)
        write_backup(engine.app.database, file)
        before = content(engine.app.database)
        with pytest.raises(BadInput, match="is not empty"):
            restore_backup(verify(file), engine.app.database)
        assert content(engine.app.database) == before

    target = connect(f"sqlite:///{tmp_path / 'other.db'}")
    with pytest.raises(BadInput, match="does not exist"):
        restore_backup(verify(tmp_path / "none.db"), target)
    (tmp_path / "text.db").write_text("This is no database, but a text that is long enough to be read as one." * 10)
    with pytest.raises(StoreUnavailable, match="damaged or no backup"):
        restore_backup(verify(tmp_path / "text.db"), target)
    in_use = connect(f"sqlite:///{tmp_path / 'used.db'}")
    migrate(in_use)
    with pytest.raises(BadInput, match="not a backup"):
        restore_backup(verify(tmp_path / "used.db"), target)
    in_use.close()
    page = bytearray(file.read_bytes())
    page[4096 * 5 : 4096 * 6] = b"\xa5" * 4096
    (tmp_path / "damaged.db").write_bytes(page)
    with pytest.raises(StoreUnavailable, match="damaged"):
        restore_backup(verify(tmp_path / "damaged.db"), target)
    _alter(file, "INSERT INTO migrations VALUES (9999, 'future', 'x', 0); DROP TABLE digests")
    _sign(file)
    with pytest.raises(StoreUnavailable, match="newer tidings"):
        restore_backup(verify(file), target)
    assert not _rows(target, "SELECT 1 FROM sqlite_master WHERE name = 'items'")
    target.close()


async def test_an_interrupted_restore_leaves_an_empty_database(database_url: str, tmp_path: Path) -> None:
    source = tmp_path / "source.db"
    async with an_engine(f"sqlite:///{source}") as engine:
        await filled(engine)
        write_backup(engine.app.database, tmp_path / "kept.db")

    def interrupt(done: int, total: int | None) -> None:
        if done > 100:
            raise KeyboardInterrupt

    target = connect(database_url)
    with pytest.raises(KeyboardInterrupt):
        restore_backup(verify(tmp_path / "kept.db"), target, progress=interrupt)
    assert all(not rows for rows in content(target).values())
    assert restore_backup(verify(tmp_path / "kept.db"), target).items == verify(tmp_path / "kept.db").items
    target.close()


def _rows(database: Database, select: str) -> list[tuple[Any, ...]]:
    with database.reading() as tx:
        return own_sql(tx, select)


def _sign(file: Path) -> None:
    connection = apsw.Connection(str(file))
    write_digests(SqliteTx(connection))
    connection.close()


def _alter(file: Path, statement: str) -> None:
    connection = apsw.Connection(str(file))
    connection.execute(statement)
    connection.close()
