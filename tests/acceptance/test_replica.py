"""A copy of the SQLite file, kept by a real Litestream beside real processes that are killed for real."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.acceptance.test_cli import ran
from tests.support.moto import a_moto
from tests.support.processes import Running, fleet
from tests.support.waiting import until

from tidings.config import PREFIX

HN = """
database_url = "sqlite:///tidings.db"
[pipelines.hacker_news]
base_url = "http://127.0.0.1:9/"
streams = false
[server]
port = 0
"""
TIMES = int(os.environ.get("TIDINGS_REPLICA_KILLS", "3"))


def configure(folder: Path, url: str = "") -> str:
    """Write a configuration that copies to a folder; return the place's address."""
    url = url or f"file://{folder}/copies"
    (folder / "tidings.toml").write_text(f'{HN}\n[replicate]\nurl = "{url}"\n')
    return url


def lines(first: int, count: int) -> bytes:
    ids = range(first, first + count)
    return b"\n".join(json.dumps({"id": n, "type": "story", "title": f"Story {n}"}).encode() for n in ids)


def keys(file: Path) -> set[int]:
    """Return what was accepted: findings of the log, born or not."""
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as database:
        return {int(key) for (key,) in database.execute("SELECT DISTINCT key FROM intake")}


def litestreams(folder: Path) -> Iterator[int]:
    """Yield the Litestreams that hold the lock of this folder's database open: ours, and nobody else's."""
    lock = str(folder / "tidings.db-replica")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.joinpath("comm").read_text().strip() != "litestream":
                continue
            held = {os.readlink(each) for each in process.joinpath("fd").iterdir()}
        except OSError:
            continue
        if lock in held:
            yield int(process.name)


async def copied(folder: Path, process: Running) -> None:
    """Wait until the process says that its copy is up to date."""

    async def is_up_to_date() -> bool:
        told = await ran(folder, "status")
        return "): up to date" in next((line for line in told.out.splitlines() if line.startswith("replica")), "")

    await until(is_up_to_date, watching=(process,))


async def lose_machine(folder: Path, process: Running) -> None:
    """End everything at once, as a machine that dies does."""
    for pid in litestreams(folder):
        os.kill(pid, signal.SIGKILL)
    await process.kill()


def lose_disk(folder: Path) -> Path:
    """Move everything away but the copies and the configuration; return where the lost database is."""
    lost = folder / f"lost-{len(list(folder.glob('lost-*')))}"
    lost.mkdir()
    for each in folder.iterdir():
        if each.name.startswith(("tidings.db", ".tidings.db")):
            each.rename(lost / each.name)
    return lost / "tidings.db"


@pytest.mark.slow
async def test_a_dead_machine_loses_at_most_what_was_not_copied_yet(tmp_path: Path) -> None:
    url, chance = configure(tmp_path), random.Random(24)
    accepted, certain = 0, 0
    async with fleet(tmp_path) as processes:
        for number in range(TIMES):
            process = await processes.start("run")
            await copied(tmp_path, process)
            assert (await ran(tmp_path, "upload", "hacker_news", "-", given=lines(accepted + 1, 500))).code == 0
            accepted += 500
            if number % 2:
                # Twice the interval has passed when a later question is answered: all of the upload must be there.
                await copied_now(tmp_path, process)
                certain = accepted
            await asyncio.sleep(chance.random() * 0.3)
            await lose_machine(tmp_path, process)
            lost = lose_disk(tmp_path)
            told = await ran(tmp_path, "restore", "--from", url)
            assert told.code == 0, told.err
            assert "it has to be sent again" in told.out
            restored, held = keys(tmp_path / "tidings.db"), keys(lost)
            assert restored <= held, "something is there that never was"
            assert set(range(1, certain + 1)) <= restored
            with closing(apsw.Connection(str(tmp_path / "tidings.db"))) as database:
                assert list(database.execute("PRAGMA integrity_check")) == [("ok",)]
            again = await ran(tmp_path, "upload", "hacker_news", "-", given=lines(1, accepted))
            assert again.code == 0
            assert keys(tmp_path / "tidings.db") == set(range(1, accepted + 1))
            certain = accepted if number % 2 else certain


async def copied_now(folder: Path, process: Running) -> None:
    """Wait until the place holds a change that is younger than this moment."""
    before = newest(folder)
    assert (await ran(folder, "pause", "--source", "hacker_news.firebase")).code == 0
    await until(lambda: newest(folder) > before, watching=(process,))
    assert (await ran(folder, "resume", "--source", "hacker_news.firebase")).code == 0


def newest(folder: Path) -> str:
    """Return the name of the newest file of changes, which are numbered."""
    return max((each.name for each in (folder / "copies" / "ltx" / "0").glob("*.ltx")), default="")


async def test_a_stopped_process_has_copied_everything(tmp_path: Path) -> None:
    url = configure(tmp_path)
    async with fleet(tmp_path) as processes:
        process = await processes.start("run")
        await copied(tmp_path, process)
        assert (await ran(tmp_path, "upload", "hacker_news", "-", given=lines(1, 300))).code == 0
        assert await process.stop() == 0
    assert not list(litestreams(tmp_path))
    lose_disk(tmp_path)
    assert (await ran(tmp_path, "restore", "--from", url)).code == 0
    assert keys(tmp_path / "tidings.db") == set(range(1, 301))
    # It goes on at the same place, and what comes then is copied too.
    async with fleet(tmp_path) as processes:
        process = await processes.start("run")
        await copied(tmp_path, process)
        assert (await ran(tmp_path, "upload", "hacker_news", "-", given=lines(301, 10))).code == 0
        assert await process.stop() == 0
    lose_disk(tmp_path)
    assert (await ran(tmp_path, "restore", "--from", url)).code == 0
    assert keys(tmp_path / "tidings.db") == set(range(1, 311))


@pytest.mark.slow
async def test_a_killed_process_leaves_no_litestream_and_the_next_one_copies(tmp_path: Path) -> None:
    configure(tmp_path)
    async with fleet(tmp_path) as processes:
        first = await processes.start("run")
        await copied(tmp_path, first)
        second = await processes.start("run", "--role", "work")
        await until(lambda: second.has_started, watching=(second,))
        assert len(list(litestreams(tmp_path))) == 1
        before = set(litestreams(tmp_path))
        await first.kill()
        await until(lambda: set(litestreams(tmp_path)) - before, watching=(second,))
        await until(lambda: len(list(litestreams(tmp_path))) == 1, watching=(second,))
        os.kill(next(litestreams(tmp_path)), signal.SIGKILL)
        await until(lambda: any("Litestream" in e.get("error", "") for e in second.events()), watching=(second,))
        await until(lambda: len(list(litestreams(tmp_path))) == 1, watching=(second,))
        await until(lambda: any(e["event"] == "database copied again" for e in second.events()), watching=(second,))


@pytest.mark.slow
async def test_a_copy_in_a_store_like_amazons_comes_back(tmp_path: Path) -> None:
    with a_moto() as address:
        url = configure(tmp_path, "s3://news/tidings")
        secret = {
            "TIDINGS_REPLICATE__SECRET": "hush-hush",
            "TIDINGS_REPLICATE__ACCESS_KEY": "me",
            "TIDINGS_REPLICATE__ENDPOINT": address,
            "TIDINGS_REPLICATE__REGION": "us-east-1",
        }
        async with fleet(tmp_path) as processes:
            process = await processes.start("run", **secret)
            await until(lambda: process.has_started, watching=(process,))
            assert (await ran(tmp_path, "upload", "hacker_news", "-", given=lines(1, 50))).code == 0
            assert await process.stop() == 0
            assert "hush-hush" not in process.log.read_text()
        lose_disk(tmp_path)
        told = await ran(tmp_path, "restore", "--from", url, environment=secret)
        assert told.code == 0, told.err
        assert keys(tmp_path / "tidings.db") == set(range(1, 51))


async def test_a_new_database_never_writes_over_the_copies_of_a_lost_one(tmp_path: Path) -> None:
    url = configure(tmp_path)
    async with fleet(tmp_path) as processes:
        process = await processes.start("run")
        await copied(tmp_path, process)
        assert (await ran(tmp_path, "upload", "hacker_news", "-", given=lines(1, 20))).code == 0
        assert await process.stop() == 0
        lose_disk(tmp_path)
        careless = await processes.start("run")
        assert await careless.ended() == 2
        assert "holds copies of another database" in careless.log.read_text()
        lose_disk(tmp_path)
    assert (await ran(tmp_path, "restore", "--from", url)).code == 0
    assert keys(tmp_path / "tidings.db") == set(range(1, 21))


@pytest.mark.slow
async def test_a_place_that_fails_is_told_and_caught_up_with(tmp_path: Path) -> None:
    configure(tmp_path)
    async with fleet(tmp_path) as processes:
        process = await processes.start("run")
        await copied(tmp_path, process)
        shutil.rmtree(tmp_path / "copies")
        (tmp_path / "copies").write_text("in the way")
        assert (await ran(tmp_path, "upload", "hacker_news", "-", given=lines(1, 5))).code == 0

        async def is_failing() -> bool:
            return "failing" in (await ran(tmp_path, "status")).out

        await until(is_failing, watching=(process,))
        assert (await ran(tmp_path, "doctor")).code == 1
        (tmp_path / "copies").unlink()
        await copied(tmp_path, process)
        assert await process.stop() == 0
    lose_disk(tmp_path)
    assert (await ran(tmp_path, "restore", "--from", f"file://{tmp_path}/copies")).code == 0
    assert keys(tmp_path / "tidings.db") == set(range(1, 6))


async def test_status_and_doctor_tell_that_nothing_copies(tmp_path: Path) -> None:
    configure(tmp_path)
    assert (await ran(tmp_path, "upload", "hacker_news", "-", given=lines(1, 1))).code == 0
    assert "nothing copies the database" in (await ran(tmp_path, "status")).out
    told = (await ran(tmp_path, "doctor")).out
    assert "advice   replica" in told
    assert "is empty" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["restore"], "name a backup's FILE, or --from URL"),
        (["restore", "one.db", "--from", "file:///copies"], "one of them"),
        (["restore", "one.db", "--at", "2026-01-01T00:00:00Z"], "--at goes with --from"),
        (["restore", "--from", "ftp://host/folder"], "write file:///FOLDER, s3://BUCKET/PREFIX or sftp://"),
        (["restore", "--from", "file://copies"], "three slashes"),
        (["restore", "--from", "file:///nowhere/at/all"], "holds no copy"),
        (["restore", "--from", "sftp://me:geheim@host/folder"], f"{PREFIX}REPLICATE__SECRET"),
        (["run", "--replicate", "s3://"], "needs a name"),
    ],
)
async def test_what_cannot_be_meant_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "tidings.toml").write_text(HN)
    told = await ran(tmp_path, *arguments)
    assert told.code in (1, 2)
    assert message in told.err
    assert "geheim" not in told.err + told.out
    assert "Traceback" not in told.err


async def test_an_occupied_place_and_a_wrong_time_are_refused(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text(HN)
    assert (await ran(tmp_path, "upload", "hacker_news", "-", given=lines(1, 1))).code == 0
    told = await ran(tmp_path, "restore", "--from", f"file://{tmp_path}/copies")
    assert (told.code, "move it away" in told.err) == (1, True)
    lose_disk(tmp_path)
    told = await ran(tmp_path, "restore", "--from", f"file://{tmp_path}/copies", "--at", "yesterday")
    assert (told.code, "write a time and its zone" in told.err) == (2, True)
    assert not (tmp_path / "tidings.db").exists()
