"""kill -9 of the process that keeps the search index, at any point: in the end the index equals a new one."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.environment import clean_environment
from tests.support.example import thing
from tests.support.followed_search import FollowedSearch
from tests.support.store import Ground
from tests.support.waiting import wait_until

from tidings.follow.search.index import SearchIndex
from tidings.model.query_tree import AllOf
from tidings.store.cards import drop_shown

KILLS = 200 if os.environ.get("TIDINGS_STORM") == "full" else 6
NAMES = [f"n{number}" for number in range(40)]
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_an_index_equals_a_new_one_however_often_its_process_is_killed(
    database_url: str, open_ground: Callable[..., Ground], tmp_path: Path
) -> None:
    ground, chance, folder = open_ground(), random.Random(17), tmp_path / "index"
    for number in range(KILLS):
        process = followed(database_url, folder, until_open=chance.random() < 0.8)
        try:
            for _ in range(chance.randrange(1, 6)):
                change(ground, chance, number)
                time.sleep(chance.random() * 0.1)
        finally:
            process.kill()
            process.wait()

    process = followed(database_url, folder)
    try:
        fresh = FollowedSearch(ground.store, ground.pipelines, ground.now_ms)
        fresh.catch_up()
        expected = everything(fresh.index)
        assert expected
        reader = SearchIndex(folder)
        assert not reader.is_writer
        wait_until(lambda: everything(reader) == expected)
    finally:
        process.kill()
        process.wait()


def followed(url: str, folder: Path, *, until_open: bool = True) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.support.follow_process", url, str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, env=clean_environment(PYTHONPATH=f"{ROOT}:{ROOT / 'src'}"))
    if until_open:
        wait_until(lambda: process.poll() is not None or is_held(folder / "writer.lock"))
        assert process.poll() is None
    return process


def is_held(lock: Path) -> bool:
    if not lock.exists():
        return False
    with lock.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def change(ground: Ground, chance: random.Random, number: int) -> None:
    some = chance.sample(NAMES, 8)
    ground.record(*(thing(name, f"text {number} of {name} {chance.random()}") for name in some))
    ground.work()
    if chance.random() < 0.3:
        with ground.database.transaction() as tx:
            drop_shown(tx, [ground.item(chance.choice(some)).id])


def everything(index: SearchIndex) -> list[tuple[str, str, int]]:
    found = index.search(AllOf(), order="newest", limit=500)
    return sorted((hit.key, hit.title, hit.item) for hit in found.hits)
