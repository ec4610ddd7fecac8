"""kill -9 of the process that writes a mirror, at any point: in the end the mirror is what a rebuild makes."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.acceptance.mirror_process import PIPELINE, PLAN, a_mirror, follow, read_stream, write_stream
from tests.support.environment import clean_environment
from tests.support.redis import a_redis

from tidings.follow.mirrors.names import names_for
from tidings.follow.mirrors.target import Target
from tidings.model.changes import Change

PROGRAM = Path(__file__).with_name("mirror_process.py")
KILLS = 200 if os.environ.get("TIDINGS_STORM") == "full" else 8


class FileStream:
    """Cards that come, change and go; the file always holds the latest state of each."""

    def __init__(self, file: Path, rng: random.Random) -> None:
        self.file, self._rng = file, rng
        self._changes: dict[str, Change] = {}
        self._version = 0
        write_stream(file, [])

    def act(self) -> None:
        for _ in range(self._rng.randrange(1, 25)):
            name = f"article:{self._rng.randrange(40):02}"
            value = None if self._rng.random() < 0.25 else msgspec.json.encode({"n": self._rng.randrange(3)})
            self._put(name, "articles", value)
        ids = sorted((each.partition(":")[2] for each in self.cards), reverse=True)
        self._put("index:articles", "", msgspec.json.encode({"ids": ids}))
        write_stream(self.file, list(self._changes.values()))

    def _put(self, key: str, collection: str, value: bytes | None) -> None:
        self._version += 1
        sort = int(key[-2:]) if collection else 0
        self._changes[key] = Change(self._version, PIPELINE, key, collection, sort, value, 1, 1, 0)

    @property
    def cards(self) -> dict[str, bytes]:
        found = self._changes.values()
        return {each.key: each.value for each in found if each.collection and each.value is not None}


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    with a_redis(tmp_path) as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["redis", "folder"])
async def test_a_killed_writer_leaves_a_mirror_that_its_successor_makes_right(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    url = request.getfixturevalue("redis_url") if kind == "redis" else f"file://{tmp_path}/copy"
    rng = random.Random(17)
    stream = FileStream(tmp_path / "stream.json", rng)
    for _ in range(KILLS):
        await kill_at_random(stream, url, rng)
        if kind == "redis":
            await forget_writer(url)

    mirror = a_mirror(url)
    while await follow(mirror, stream.file):
        pass
    await mirror.flush(at_once=True)
    held = await held_cards(mirror.target)
    listed = msgspec.json.decode(next(iter((await mirror.target.get_many([index_key(mirror.target)])).values())))
    await mirror.target.close()

    assert held == {key.partition(":")[2]: value for key, value in stream.cards.items()}
    assert listed == sorted(held, reverse=True)
    assert read_stream(stream.file, None)


async def kill_at_random(stream: FileStream, url: str, rng: random.Random) -> None:
    """Start a writer, let it reach its loop, change things under it, and kill it in the middle."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), str(stream.file), url, env=clean_environment(), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"idle\n"
    for _ in range(3):
        stream.act()
        await asyncio.sleep(rng.random() * 0.02)
    process.kill()
    await process.communicate()


async def forget_writer(url: str) -> None:
    """Let the right to write run out at once, which the dead process holds for half a minute."""
    target = a_mirror(url).target
    await target.delete_many(["tidings:writer"])
    await target.close()


def index_key(target: Target) -> str:
    return "index/BTC_ID_INDEX.json" if target.has_paths else "BTC_ID_INDEX"


async def held_cards(target: Target) -> dict[str, bytes]:
    prefix = names_for(target).cards(PIPELINE, PLAN.collections["articles"])
    values = await target.get_many(sorted(await target.keys(prefix)))
    return {key.removeprefix(prefix).removesuffix(".json"): value for key, value in values.items()}
