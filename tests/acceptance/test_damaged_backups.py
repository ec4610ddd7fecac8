"""A backup that is not what was written is never restored in silence, wherever the damage lies."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.support.commands import Ended, tidings
from tests.support.engine import Engine
from tests.support.example import pipeline, thing

from tidings.store.upkeep.backup import write_backup

IS_FULL = os.environ.get("TIDINGS_STORM") == "full"
PLACES = [20, pytest.param(1_000 if IS_FULL else 100, marks=pytest.mark.slow)]
WIDTH = 64
THINGS = 300
FATES = ("", "", "", "", "die", "reject", "postpone")
WORDS = [f"word{number:x}" for number in range(500)]
HN = "database_url = 'sqlite:///target.db'\n[pipelines.hacker_news]\nbase_url = 'http://127.0.0.1:1/v0'\n"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_settings: None, database_url: str) -> Path:
    """A backup of either database, in a folder whose configuration names a database that is not there yet."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tidings.toml").write_text(HN)
    asyncio.run(_back_up(database_url, tmp_path / "kept.db"))
    return tmp_path / "kept.db"


async def _back_up(url: str, file: Path) -> None:
    rng = random.Random(3)
    async with Engine(url, [pipeline()]) as engine:
        texts = ["Ünïcode " + " ".join(rng.choices(WORDS, k=40)) for _ in range(THINGS)]
        engine.store.intake.append(
            "example", [thing(f"t{n}", text, fate=FATES[n % len(FATES)]) for n, text in enumerate(texts)]
        )
        await engine.work_until_idle()
        engine.store.tokens.create("me", "read")
        engine.store.caches.put("http", "a", rng.randbytes(20_000), 600)
        write_backup(engine.app.database, file)


def restored() -> dict[str, list[Any]]:
    """Return everything the target holds that a restore brought, and take the target away."""
    connection = apsw.Connection("target.db")
    tables = list(connection.execute("SELECT name FROM pragma_table_list WHERE type IN ('table', 'virtual')"))
    passing = ("meta", "sqlite_schema", "sqlite_temp_schema", "migrations")
    rows = {
        str(name): sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)
        for (name,) in tables
        if name not in passing
    }
    connection.close()
    for ending in ("", "-wal", "-shm"):
        Path(f"target.db{ending}").unlink(missing_ok=True)
    return rows


def assert_refused(ended: Ended) -> None:
    assert ended.code == 1, ended
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err
    assert not Path("target.db").exists(), "something was written"


@pytest.mark.parametrize("places", PLACES)
def test_random_damage_is_found_or_without_effect(kept: Path, places: int) -> None:
    assert tidings("restore", "kept.db").code == 0
    expected, whole, rng = restored(), kept.read_bytes(), random.Random(15)
    found = 0
    for _ in range(places):
        place = rng.randrange(len(whole) - WIDTH)
        Path("damaged.db").write_bytes(whole[:place] + rng.randbytes(WIDTH) + whole[place + WIDTH :])
        ended = tidings("restore", "damaged.db")
        if ended.code == 0:
            # It fell into the empty part of a page, or onto what a restore writes by itself.
            assert restored() == expected, f"other content was restored in silence: {place}"
        else:
            assert_refused(ended)
            assert "damaged" in ended.err
            found += 1
    assert found > places / 3


CHANGES = (
    ("items", "UPDATE items SET fingerprint = fingerprint || 'x' WHERE id = 7"),
    ("bodies", "UPDATE bodies SET body = CAST(body AS TEXT) WHERE item = 7"),
    ("journal", "DELETE FROM journal WHERE id = (SELECT max(id) FROM journal)"),
    (
        "tombstones",
        "INSERT INTO tombstones (pipeline, kind, key, fingerprint, buried_at, forget_at) "
        "VALUES ('example', 'thing', 'new', 'x', 0, 0)",
    ),
    ("sqlite_sequence", "UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'intake'"),
    ("meta", "UPDATE meta SET value = '1' WHERE name = 'backup_taken_at'"),
    ("sqlite_schema", "CREATE TABLE another (name TEXT)"),
    ("digests", "UPDATE digests SET digest = 'x' WHERE name = 'items'"),
    ("digests", "DELETE FROM digests WHERE name = 'items'"),
)


@pytest.mark.parametrize(("table", "change"), CHANGES)
def test_a_change_that_leaves_the_file_in_order_is_found_and_named(kept: Path, table: str, change: str) -> None:
    alter(kept, change)
    for command in (("restore", "kept.db"), ("restore", "kept.db", "--unverified"), ("backup", "verify", "kept.db")):
        ended = tidings(*command)
        assert_refused(ended)
        assert f"kept.db is damaged ({table} " in ended.err


def alter(file: Path, statement: str) -> None:
    connection = apsw.Connection(str(file))
    connection.execute(statement)
    connection.close()


NO_BACKUPS: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: os.truncate(file, 0),
    "its first bytes": lambda file: os.truncate(file, 50),
    "its first page": lambda file: os.truncate(file, 8192),
    "cut in half": lambda file: os.truncate(file, file.stat().st_size // 2),
    "a byte short": lambda file: os.truncate(file, file.stat().st_size - 1),
    "a text": lambda file: file.write_text("This is not a database. " * 1000),
}


@pytest.mark.parametrize("name", NO_BACKUPS)
def test_what_is_cut_off_or_no_backup_is_refused(kept: Path, name: str) -> None:
    NO_BACKUPS[name](kept)
    for command in (("restore", "kept.db"), ("restore", "kept.db", "--unverified"), ("backup", "verify", "kept.db")):
        ended = tidings(*command)
        assert_refused(ended)
        assert "kept.db is " in ended.err


def test_a_database_of_something_else_is_refused(kept: Path) -> None:
    alter(kept.with_name("songs.db"), "CREATE TABLE songs (name TEXT)")
    for command in (("restore", "songs.db", "--unverified"), ("backup", "verify", "songs.db")):
        ended = tidings(*command)
        assert (ended.code, "no backup of tidings" in ended.err) == (2, True), ended
    assert not Path("target.db").exists()


def test_a_backup_without_digests_is_restored_only_if_told_so(kept: Path) -> None:
    """As an older version wrote it."""
    assert tidings("restore", "kept.db").code == 0
    expected = restored()
    alter(kept, "DROP TABLE digests")
    for command in (("restore", "kept.db"), ("backup", "verify", "kept.db")):
        ended = tidings(*command)
        assert_refused(ended)
        assert "cannot be verified" in ended.err
        assert "--unverified" in ended.err
    assert tidings("restore", "kept.db", "--unverified").code == 0
    assert restored() == expected


def test_a_sound_backup_is_verified_without_any_configuration(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text("this = [is no configuration")
    ended = tidings("backup", "verify", "kept.db")
    assert (ended.code, "every table holds what was written" in ended.out) == (0, True), ended
    found = json.loads(tidings("backup", "verify", "kept.db", "--json").out)
    assert found["file"] == "kept.db"
    assert found["items"] == THINGS
    assert found["digest"] in ended.out
    again = json.loads(tidings("backup", "verify", "kept.db", "--json").out)
    assert again == found


def test_a_backup_is_written_with_or_without_the_word(kept: Path, tmp_path: Path) -> None:
    assert tidings("restore", "kept.db").code == 0
    forms = (("one.db",), ("write", "two.db"), ("--json", "three.db"), ("--config", "tidings.toml", "four.db"))
    for words in forms:
        assert tidings("backup", *words).code == 0, words
        assert tidings("backup", "verify", words[-1]).code == 0
    assert tidings("backup", "--json", "one.db", "--force").code == 0
    assert (tmp_path / "verify").exists() is False
    assert tidings("backup", "./verify").code == 0
    assert (tmp_path / "verify").exists()
    assert tidings("backup").code == 2
