"""`tidings serve --from`: the read-only API worker as a process of its own, with no database anywhere."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.clock import ManualClock
from tests.support.commands import tidings
from tests.support.processes import fleet
from tests.support.redis import a_redis
from tests.support.waiting import until
from tests.unit.follow.mirrors.stream import NOW_MS, a_mirror

from tidings.follow.mirrors.addresses import TargetAddress, open_target
from tidings.follow.mirrors.mirror import MirrorPace
from tidings.follow.mirrors.names import MirroredPipeline, mirrored
from tidings.model.changes import Change
from tidings.pipelines.bitcoin_news.cards import EXAMPLE, articles

PIPELINE = "bitcoin_news"
PLAN = MirroredPipeline(PIPELINE, {"articles": mirrored(articles(), "BTC_ID_INDEX")})


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    with a_redis(tmp_path) as url:
        yield url


def changes(count: int) -> list[Change]:
    ids = [f"a{number:03}" for number in reversed(range(count))]
    cards = [
        Change(
            number + 1,
            PIPELINE,
            f"article:{each}",
            "articles",
            NOW_MS - number * 60_000,
            msgspec.json.encode(msgspec.structs.replace(EXAMPLE, id=each, title=f"Article {each}")),
            1,
            number + 1,
            NOW_MS,
        )
        for number, each in enumerate(ids)
    ]
    value = msgspec.json.encode({"ids": ids, "sorts": [card.sort for card in cards]})
    return [*cards, Change(count + 1, PIPELINE, "index:articles", "", 0, value, 1, -1, NOW_MS)]


async def fill(url: str, count: int) -> None:
    target = open_target(TargetAddress(url))
    mirror = a_mirror(target, ManualClock(NOW_MS), pace=MirrorPace(0, 0, 2_000), plans=[PLAN])
    await mirror.position(PIPELINE)
    await mirror.follow(PIPELINE, changes(count), str(count))
    await mirror.flush(at_once=True)
    await target.close()


def read(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            body = answer.read()
            return answer.status, json.loads(body) if "json" in answer.headers["content-type"] else body.decode()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


async def test_a_worker_serves_a_mirror_without_any_database(tmp_path: Path, redis_url: str) -> None:
    await fill(redis_url, 30)
    empty = tmp_path / "empty"
    empty.mkdir()
    async with fleet(empty) as processes:
        worker = await processes.start("serve", "--from", redis_url, "--port", "0")
        await until(lambda: worker.has_started, watching=[worker])
        base = next(event["address"] for event in worker.events() if event["event"] == "started")

        status, listing = await until(lambda: read(f"{base}/api/v1/bitcoin_news/articles"))
        assert (status, listing["total"], listing["warnings"]) == (200, 30, [])
        assert [card["id"] for card in listing["articles"]] == [f"a{n:03}" for n in reversed(range(30))]
        assert listing["sentiment_counts"]["positive"] == 30
        assert read(f"{base}/api/v1/bitcoin_news/articles/a007")[1]["title"] == "Article a007"
        assert "Article a029" in read(f"{base}/feeds/bitcoin_news.rss")[1]
        assert read(f"{base}/readyz")[0] == 200
        assert read(f"{base}/api/v1/bitcoin_news/articles/none")[0] == 404

        await fill(redis_url, 31)
        await until(lambda: read(f"{base}/api/v1/bitcoin_news/articles")[1]["total"] == 31)
        assert await worker.stop() == 0
        assert [each.name for each in empty.iterdir() if each.suffix != ".log"] == []


async def test_an_open_worker_wants_a_token_or_to_be_public(tmp_path: Path, redis_url: str) -> None:
    await fill(redis_url, 1)
    async with fleet(tmp_path) as processes:
        refused = await processes.start("serve", "--from", redis_url, "--host", "0.0.0.0", "--port", "0")

        assert await refused.ended() == 2
        assert "TIDINGS_READ_TOKEN" in refused.log.read_text()


async def test_an_empty_place_and_an_odd_address_are_told(tmp_path: Path, redis_url: str) -> None:
    async with fleet(tmp_path) as processes:
        empty = await processes.start("serve", "--from", redis_url)
        odd = await processes.start("serve", "--from", "gopher://somewhere")

        assert (await empty.ended(), await odd.ended()) == (2, 2)
        assert "holds no mirror yet" in empty.log.read_text()
        assert "redis://" in odd.log.read_text()


async def test_check_and_repair_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tidings.toml").write_text(
        f'[pipelines.bitcoin_news]\nfeeds = []\n[mirrors.copy]\nurl = "file://{tmp_path}/copy"\n'
        'index_names = { articles = "BTC_ID_INDEX" }\n'
    )
    assert (await asyncio.to_thread(tidings, "mirror", "check", "copy")).code == 0
    card = tmp_path / "copy/api/v1/bitcoin_news/articles/stray.json"
    card.parent.mkdir(parents=True)
    card.write_text("{}")

    found = await asyncio.to_thread(tidings, "mirror", "check", "copy", "--json")
    assert found.code == 1
    assert json.loads(found.out)[0]["extra"] == ["api/v1/bitcoin_news/articles/stray.json"]

    repaired = await asyncio.to_thread(tidings, "mirror", "repair", "copy")
    assert (repaired.code, repaired.out.splitlines()[-1]) == (0, "repaired")
    assert not card.exists()
    assert json.loads((tmp_path / "copy/index/BTC_ID_INDEX.json").read_text()) == []
    assert (await asyncio.to_thread(tidings, "mirror", "check", "copy")).code == 0


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('url = "redis://user:hidden@host/0"', "TIDINGS_MIRRORS__EDGE__URL"),
        ('url = "redis://host/0"\nsecret = "hidden"', "TIDINGS_MIRRORS__EDGE__SECRET"),
        ('url = "redis://host/0"\npipelines = ["nothing"]', "mirrors.edge.pipelines"),
        ('url = "redis://host/0"\ncollections = ["nothing"]', "mirrors.edge.collections"),
        ('url = "redis://host/0"\nindex_names = { nothing = "X" }', "mirrors.edge.index_names"),
        ('url = "gopher://host"', "mirrors.edge.url"),
        ('url = "redis://[::1/0"', "mirrors.edge.url"),
        ('url = "redis://host/0"\n[mirrors.twin]\nurl = "redis://host/0/"', "the place of mirrors.edge already"),
        ('url = "cloudflare-kv://account/space"', "TIDINGS_MIRRORS__EDGE__SECRET"),
    ],
)
async def test_a_wrong_table_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, told: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tidings.toml").write_text(f"[pipelines.bitcoin_news]\n[mirrors.edge]\n{table}\n")

    ended = await asyncio.to_thread(tidings, "mirror", "check", "edge")

    assert ended.code == 2
    assert told in ended.err
    assert "hidden" not in ended.err


async def test_a_running_tidings_fills_its_mirror(tmp_path: Path, redis_url: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "tidings.toml").write_text(
        "[pipelines.hacker_news]\nbase_url = 'http://127.0.0.1:1/v0'\n"
        f"[mirrors.site]\nurl = 'file://{tmp_path}/copy'\ncard_seconds = 0\nindex_seconds = 0\n"
        f"[mirrors.edge]\nurl = '{redis_url}'\ncard_seconds = 0\nindex_seconds = 0\n"
    )
    stories = [
        {
            "id": number,
            "type": "story",
            "by": "ada",
            "time": 1_700_000_000 + number,
            "score": 1,
            "title": f"No. {number}",
        }
        for number in range(1, 21)
    ]
    (home / "stories.jsonl").write_text("\n".join(map(json.dumps, stories)))
    listing = tmp_path / "copy/api/v1/hacker_news/items.json"
    async with fleet(home) as processes:
        assert await (await processes.start("upload", "hacker_news", "stories.jsonl")).ended() == 0
        running = await processes.start("run", "--role", "work")
        await until(
            lambda: listing.exists() and json.loads(listing.read_text())["total"] == 20,
            missing=lambda: running.log.read_text()[-2_000:],
            watching=[running],
        )
        for name in ("site", "edge"):

            async def is_right(name: str = name) -> bool:
                return await (await processes.start("mirror", "check", name)).ended() == 0

            await until(is_right)
        assert await running.stop() == 0
        assert "follower failed" not in running.log.read_text()
        assert json.loads((tmp_path / "copy/api/v1/hacker_news/items/7.json").read_text())["title"] == "No. 7"
