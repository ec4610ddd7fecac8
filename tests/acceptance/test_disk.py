"""Damaged, foreign, read-only and full: one clear sentence, the documented exit code, nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.support.commands import Ended, tidings
from tests.support.disks import SmallDisk, small_disk, without_rights
from tests.support.engine import Engine
from tests.support.example import pipeline, thing
from tests.support.own_sql import own_sql
from tests.support.postgres import new_postgres_database
from tests.support.waiting import until
from tests.unit.serve.asgi import Client

from tidings.backends import backend_of
from tidings.config import Server
from tidings.model.errors import BadInput, StoreUnavailable
from tidings.pipelines import hacker_news
from tidings.serve.application import build
from tidings.store.db.database import connect
from tidings.store.upkeep.backup import write_backup
from tidings.store.upkeep.migrate import migrate
from tidings.watch.logs import log

PAGE = 8192
HN = "[pipelines.hacker_news]\nbase_url = 'http://127.0.0.1:1/v0'\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_settings: None) -> Path:
    """A folder with a configuration and a database of some size that was closed cleanly."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tidings.toml").write_text(HN)
    asyncio.run(_fill(tmp_path / "tidings.db"))
    return tmp_path


async def _fill(file: Path) -> None:
    async with Engine(f"sqlite:///{file}", [pipeline()]) as engine:
        engine.store.intake.append("example", [thing(f"t{n}", "word " * 200) for n in range(300)])
        await engine.work_until_idle()


def work() -> Ended:
    return tidings("work", "--until-idle")


def items(file: Path) -> int:
    connection = apsw.Connection(str(file))
    (count,) = next(iter(connection.execute("SELECT count(*) FROM items")))
    connection.close()
    assert isinstance(count, int)
    return count


def write_at(file: Path, offset: int, junk: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset, os.SEEK_END if offset < 0 else os.SEEK_SET)
        opened.write(junk)


def overwrite_pages_of(file: Path, name: str) -> None:
    """Overwrite the root page of a table or index in the middle of the file."""
    write_at(file, (root_page(file, name) - 1) * PAGE, b"\xa5" * PAGE)


def root_page(file: Path, name: str) -> int:
    connection = apsw.Connection(str(file))
    (page,) = next(iter(connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,))))
    connection.close()
    assert isinstance(page, int)
    return page


def crash(file: Path, statement: str = "") -> None:
    """Leave behind what a process leaves that was killed at work: a mark, and a log that was never copied back."""
    child = os.fork()
    if child == 0:
        connection = apsw.Connection(str(file))
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
        connection.execute("INSERT INTO meta VALUES ('running:gone', 'elsewhere 999999 1')")
        if statement:
            connection.execute(statement)
        os._exit(0)
    os.waitpid(child, 0)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "header overwritten": lambda file: write_at(file, 0, b"\xa5" * 100),
    "first page overwritten": lambda file: write_at(file, 0, b"\xa5" * PAGE),
    "page of a table overwritten": lambda file: overwrite_pages_of(file, "items"),
    "page of an index overwritten": lambda file: overwrite_pages_of(file, "items_due"),
    "last page overwritten": lambda file: write_at(file, -PAGE, b"\xa5" * PAGE),
    "cut in half": lambda file: os.truncate(file, file.stat().st_size // 2 // PAGE * PAGE),
    "cut inside a page": lambda file: os.truncate(file, file.stat().st_size - PAGE // 2),
    "a text": lambda file: file.write_text("This is not a database. " * 1000),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_database_is_refused_unwritten(name: str, folder: Path) -> None:
    file = folder / "tidings.db"
    DAMAGE[name](file)
    before = file.read_bytes()

    ended = work()

    assert ended.code == 1, ended
    assert "tidings restore BACKUP" in ended.err
    assert ended.err.count("\n") == 1
    assert file.read_bytes() == before


def test_a_backup_replaces_a_damaged_database(folder: Path) -> None:
    assert tidings("backup", "kept.db").code == 0
    overwrite_pages_of(folder / "tidings.db", "items")
    refused = tidings("restore", "kept.db")
    assert (refused.code, "Move it away" in refused.err) == (1, True)
    for name in ("tidings.db", "tidings.db-wal", "tidings.db-shm"):
        (folder / name).unlink(missing_ok=True)
    restored = tidings("restore", "kept.db")
    assert restored.code == 0, restored
    assert items(folder / "tidings.db") == 300


def test_an_empty_file_becomes_a_new_database(folder: Path) -> None:
    os.truncate(folder / "tidings.db", 0)
    ended = work()
    assert ended.code == 0
    assert "a new database begins in it" in ended.err
    assert items(folder / "tidings.db") == 0


def test_an_empty_file_beside_a_log_is_refused(folder: Path) -> None:
    crash(folder / "tidings.db")
    log = (folder / "tidings.db-wal").read_bytes()
    os.truncate(folder / "tidings.db", 0)
    ended = work()
    assert (ended.code, "cut off" in ended.err) == (1, True)
    assert (folder / "tidings.db-wal").read_bytes() == log != b""


def test_a_deleted_log_costs_only_what_was_in_it(folder: Path) -> None:
    crash(folder / "tidings.db", "DELETE FROM items")
    (folder / "tidings.db-wal").unlink()
    assert work().code == 0
    assert items(folder / "tidings.db") == 300


def test_a_scribbled_log_is_left_out(folder: Path) -> None:
    (folder / "tidings.db-wal").write_bytes(os.urandom(PAGE * 4))
    assert work().code == 0
    assert items(folder / "tidings.db") == 300


def test_after_an_unclean_stop_the_whole_file_is_checked_once(folder: Path) -> None:
    crash(folder / "tidings.db")
    first, second = work(), work()
    assert (first.code, second.code) == (0, 0)
    assert "checked in full and is sound" in first.err
    assert "checked in full" not in second.err


def test_another_databases_log_is_noticed_before_it_is_taken_in(folder: Path) -> None:
    other = folder / "other.db"
    alter(other, "CREATE TABLE meta (name TEXT, value TEXT)")
    crash(other, "CREATE TABLE songs AS SELECT zeroblob(9000) AS song")
    shutil.copy(f"{other}-wal", folder / "tidings.db-wal")
    before = (folder / "tidings.db").read_bytes()
    ended = work()
    assert (ended.code, ended.err.count("\n")) == (1, 1), ended
    assert (folder / "tidings.db").read_bytes() == before
    (folder / "tidings.db-wal").unlink()
    assert work().code == 0
    assert items(folder / "tidings.db") == 300


def test_a_lost_index_entry_is_found_after_an_unclean_stop(folder: Path) -> None:
    """The quick check does not compare indexes with their tables; the full one does."""
    file = folder / "tidings.db"
    alter(file, "CREATE TABLE twin (a); CREATE INDEX twin_a ON twin (a); INSERT INTO twin VALUES (1)")
    page = (root_page(file, "twin_a") - 1) * PAGE
    index = file.read_bytes()[page : page + PAGE]
    alter(file, "UPDATE twin SET a = 2")
    write_at(file, page, index)
    assert work().code == 0
    crash(file)
    ended = work()
    assert (ended.code, "is damaged (row 1 missing from index twin_a)" in ended.err) == (1, True), ended


def alter(file: Path, statement: str) -> None:
    connection = apsw.Connection(str(file))
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("command", [("work",), ("status",), ("backup", "kept.db"), ("db", "migrate")])
def test_a_newer_schema_is_refused(command: tuple[str, ...], folder: Path) -> None:
    alter(folder / "tidings.db", "INSERT INTO migrations VALUES (9999, 'future', 'x', 0)")
    ended = tidings(*command)
    assert ended.code == 1
    assert "newer tidings" in ended.err
    assert "upgrade tidings" in ended.err


def test_an_altered_schema_is_refused(folder: Path) -> None:
    alter(folder / "tidings.db", "UPDATE migrations SET checksum = 'x'")
    ended = work()
    assert (ended.code, "differs from the released one" in ended.err) == (1, True)


def test_somebody_elses_database_is_refused(folder: Path) -> None:
    (folder / "tidings.db").unlink()
    alter(folder / "tidings.db", "CREATE TABLE songs (name TEXT)")
    before = (folder / "tidings.db").read_bytes()
    ended = work()
    assert (ended.code, "something else" in ended.err) == (1, True)
    assert (folder / "tidings.db").read_bytes() == before


def test_a_newer_postgresql_schema_is_refused(folder: Path, postgres_server: str) -> None:
    url = new_postgres_database(postgres_server)
    database = connect(url)
    migrate(database)
    with database.transaction() as tx:
        own_sql(tx, "INSERT INTO migrations VALUES (9999, 'future', 'x', 0)")
    database.close()
    (folder / "tidings.toml").write_text(f'database_url = "{url}"\n{HN}')
    ended = work()
    assert (ended.code, "newer tidings" in ended.err) == (1, True)


def test_an_absent_postgresql_is_named(folder: Path) -> None:
    (folder / "tidings.toml").write_text(f"database_url = 'postgresql://127.0.0.1:1/nothing'\n{HN}")
    ended = work()
    assert (ended.code, "PostgreSQL" in ended.err, "Traceback" in ended.err) == (1, True, False)


@pytest.fixture
def shown_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the same content that every user may look into."""
    with tempfile.TemporaryDirectory(prefix="tidings-shown-") as name:
        shown = Path(name)
        shown.chmod(0o755)
        shutil.copy(folder / "tidings.db", shown / "tidings.db")
        (shown / "tidings.toml").write_text(HN)
        monkeypatch.chdir(shown)
        assert work().code == 0  # Everything is imported before rights are dropped.
        yield shown


def test_a_read_only_file_is_named(shown_folder: Path) -> None:
    shown_folder.chmod(0o777)
    (shown_folder / "tidings.db").chmod(0o444)
    with without_rights():
        ended = work()
    assert (ended.code, "read-only" in ended.err) == (1, True), ended


def test_a_read_only_folder_is_named(shown_folder: Path) -> None:
    (shown_folder / "tidings.db").chmod(0o666)
    shown_folder.chmod(0o555)
    with without_rights():
        ended = work()
    shown_folder.chmod(0o755)
    assert ended.code == 1
    assert "may this user write there?" in ended.err or "read-only" in ended.err


def test_a_missing_folder_is_named(folder: Path) -> None:
    (folder / "tidings.toml").write_text(f"database_url = 'sqlite:///nowhere/tidings.db'\n{HN}")
    ended = work()
    assert (ended.code, "does its folder exist" in ended.err) == (1, True)


def test_a_folder_in_place_of_the_file_is_named(folder: Path) -> None:
    (folder / "a.folder").mkdir()
    (folder / "tidings.toml").write_text(f"database_url = 'sqlite:///a.folder'\n{HN}")
    ended = work()
    assert (ended.code, "is no file" in ended.err) == (1, True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


WRITES: dict[str, Callable[[Engine], Any]] = {
    "append": lambda e: e.store.intake.append("example", [thing("new")]).accepted,
    "merge": lambda e: e.store.intake.merge("example").born,
    "claim": lambda e: len(e.store.items.claim("example", "pure", 5, "me", 60)),
    "sweep": lambda e: e.store.items.sweep(),
    "declare a source": lambda e: e.store.schedules.declare("example.other", "example"),
    "reserve a budget": lambda e: e.store.budgets.reserve("tokens", 1, 10),
    "cache": lambda e: e.store.caches.put("http", "a", b"b", 60),
    "enter a limiter": lambda e: e.store.limiters.enter("room", limit=1, per_seconds=60, hold_seconds=5).token,
    "pause": lambda e: e.store.pauses.pause("pipeline:example", "full"),
    "create a token": lambda e: e.store.tokens.create("me", "read"),
    "replay": lambda e: e.store.operations.replay("example", state=None, query=None, actor="me", dry_run=False),
    "tidy": lambda e: e.store.retention.tidy(),
}


@pytest.mark.parametrize("name", WRITES)
async def test_a_full_disk_acknowledges_nothing_and_heals(name: str, disk: SmallDisk) -> None:
    file = disk.folder / "tidings.db"
    async with Engine(f"sqlite:///{file}", [pipeline()], durability="power-safe") as engine:
        engine.store.intake.append("example", [thing("a"), thing("b")])
        engine.store.intake.merge("example")
        engine.store.items.claim("example", "pure", 1, "gone", 5)
        engine.store.intake.append("example", [thing("c")])
        engine.store.caches.put("http", "old", b"", 1)
        engine.advance_clock(seconds=60)
        before = _content(engine)
        with disk.full(file), pytest.raises(StoreUnavailable):
            WRITES[name](engine)
        assert _content(engine) == before
        WRITES[name](engine)
        engine.store.switches.resume("pipeline:example")
        engine.advance_clock(seconds=60)
        await engine.sweep()
        await engine.work_through(rounds=5)
        assert engine.states("thing")["shown"] >= 3
        with engine.app.database.reading() as tx:
            assert own_sql(tx, "PRAGMA integrity_check") == [("ok",)]


def _content(engine: Engine) -> dict[str, Any]:
    names = (
        "intake",
        "items",
        "journal",
        "checkpoints",
        "schedules",
        "budgets",
        "caches",
        "limiters",
        "pauses",
        "tokens",
    )
    with engine.app.database.reading() as tx:
        return {name: own_sql(tx, f"SELECT * FROM {name}", {}) for name in names}


async def test_workers_wait_on_a_full_disk_and_go_on_by_themselves(disk: SmallDisk) -> None:
    file = disk.folder / "tidings.db"
    async with Engine(f"sqlite:///{file}", [pipeline()], durability="power-safe") as engine:
        engine.store.intake.append("example", [thing(f"t{n}") for n in range(50)])
        stop = asyncio.Event()
        with disk.full(file):
            running = asyncio.create_task(engine.app.worker().run(stop))
            with pytest.raises(StoreUnavailable):
                await engine.app.executor.write(engine.store.intake.append, "example", [thing("refused")])
            assert engine.states("thing") == {}
            assert not running.done()
        async with asyncio.timeout(60):
            while engine.states("thing") != {"shown": 50}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        stop.set()
        await running


async def test_a_full_disk_is_told_by_readyz_and_seldom_in_the_log(disk: SmallDisk) -> None:
    """A balancer must send uploads elsewhere, and the log must not fill what is left of the disk."""
    file = disk.folder / "tidings.db"
    lines: list[logging.LogRecord] = []
    async with Engine(f"sqlite:///{file}", [hacker_news.build(hacker_news.Settings())]) as engine:
        token = engine.store.tokens.create("test", "ingest")
        client = Client(build(backend_of(engine.app, Server().model_dump(), loopback=True)), token=token)
        story = {"id": 1, "type": "story", "by": "ada", "time": 1_700_000_000, "title": "T", "text": "word " * 2_000}
        assert (await client.get("/readyz")).status == 200
        with disk.full(file), kept_lines(lines):
            started = time.monotonic()
            refused = [await client.post("/api/v1/hacker_news/items", story) for _ in range(300)]
            seconds = time.monotonic() - started
            not_ready = await client.get("/readyz")
        # Nobody writes now; it notices by itself.
        await until(lambda: answers(client, "/readyz", 200))
        accepted = await client.post("/api/v1/hacker_news/items", story)

    assert {answer.status for answer in refused} == {507}
    assert not_ready.status == 503
    assert "full" in not_ready.json["problems"]["database"]
    told = [record for record in lines if record.levelno >= logging.WARNING]
    assert 1 <= len(told) <= seconds + 2
    assert seconds < 1 or any(record.__dict__["fields"]["left_out"] for record in told)
    assert accepted.status == 202


async def answers(client: Client, path: str, status: int) -> bool:
    return (await client.get(path)).status == status


@contextlib.contextmanager
def kept_lines(lines: list[logging.LogRecord]) -> Iterator[None]:
    handler = logging.Handler()
    handler.emit = lines.append  # type: ignore[method-assign,assignment]
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def test_a_backup_that_does_not_fit_leaves_nothing_behind(folder: Path, disk: SmallDisk) -> None:
    database = connect(f"sqlite:///{folder / 'tidings.db'}")
    with disk.full(folder / "tidings.db"), pytest.raises((StoreUnavailable, BadInput), match=r"full|failed|written"):
        write_backup(database, disk.folder / "kept.db")
    assert list(disk.folder.iterdir()) == []
    write_backup(database, disk.folder / "kept.db")
    database.close()
