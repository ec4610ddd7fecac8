"""A static copy: the API's own answers as files, complete at every moment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.bucket import Bucket, a_bucket
from tests.support.clock import ManualClock
from tests.unit.follow.mirrors.stream import NOW_MS, DayCounter
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World, a_world

from tidings.follow.mirrors.addresses import TargetAddress
from tidings.follow.mirrors.check import check, repair
from tidings.follow.mirrors.folder_target import FolderTarget
from tidings.follow.mirrors.mirror import Mirror, MirrorPace
from tidings.follow.mirrors.whole_shelf import whole_shelf
from tidings.mirror_reader import ThreadExecutor, read_backend, whole_plan
from tidings.mirroring import MirrorSpec, opened_mirror
from tidings.model.errors import Misconfigured
from tidings.model.pipeline import Pipeline
from tidings.net.client import Web
from tidings.serve.application import build
from tidings.serve.read_only import build_reader
from tidings.static_answers import StaticAnswers


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        yield world


@pytest.fixture
def pipelines(world: World) -> dict[str, Pipeline]:
    return {name: replace(each, announce={}) for name, each in world.pipelines.items()}


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with a_bucket() as bucket:
        yield bucket
        assert bucket.refusals == []


def spec_of(address: TargetAddress, pipelines: dict[str, Pipeline]) -> MirrorSpec:
    plans = tuple(whole_plan(each) for each in pipelines.values())
    return MirrorSpec("static", address, plans, MirrorPace(0, 0, 2_000), 0, "https://news.example/copy")


async def fill(mirror: Mirror, world: World, pipelines: dict[str, Pipeline], position: str = "1") -> None:
    for pipeline in pipelines.values():
        plan = whole_plan(pipeline)
        await mirror.position(plan.name)
        await mirror.follow(plan.name, whole_shelf(world.store.shelf, plan, newest=2_000), position)
    await mirror.flush(at_once=True)


@pytest.fixture
async def copied(world: World, pipelines: dict[str, Pipeline], tmp_path: Path) -> Path:
    clock = ManualClock(NOW_MS)
    spec = spec_of(TargetAddress(f"file://{tmp_path}/copy"), pipelines)
    async with opened_mirror(spec, pipelines, DayCounter(clock), clock, Web(user_agent="tests")) as mirror:
        await fill(mirror, world, pipelines)
    return tmp_path / "copy"


async def test_files_are_the_answers_of_the_api(copied: Path, world: World) -> None:
    whole = Client(build(world.backend()))

    for name in ("bitcoin_news/articles", "hacker_news/items"):
        answer = (await whole.get(f"/api/v1/{name}", limit=500)).json
        assert json.loads((copied / f"api/v1/{name}.json").read_bytes()) == answer
    card = (await whole.get("/api/v1/bitcoin_news/articles/a0")).json
    assert json.loads((copied / "api/v1/bitcoin_news/articles/a0.json").read_bytes()) == card
    ids = [each["id"] for each in json.loads((copied / "api/v1/bitcoin_news/articles.json").read_bytes())["articles"]]
    assert json.loads((copied / "index/index%3Aarticles.json").read_bytes()) == ids


async def test_feeds_name_the_place_where_they_are_read(copied: Path) -> None:
    feed = (copied / "feeds/bitcoin_news.rss").read_text()

    assert "https://news.example/copy/feeds/bitcoin_news.rss" in feed
    assert "<item>" in feed
    assert json.loads((copied / "feeds/bitcoin_news.json").read_bytes())["items"]


async def test_a_server_reads_a_folder(copied: Path, world: World, pipelines: dict[str, Pipeline]) -> None:
    whole, executor = Client(build(world.backend())), ThreadExecutor()
    reader = Client(build_reader(read_backend(FolderTarget(f"file://{copied}"), pipelines, executor)))

    for path in ("/api/v1/bitcoin_news/articles", "/api/v1/hacker_news/items?type=comment"):
        assert (await reader.get(path)).json == (await whole.get(path)).json
    executor.close()


async def test_every_list_in_a_bucket_comes_after_its_cards(
    world: World, pipelines: dict[str, Pipeline], bucket: Bucket
) -> None:
    clock = ManualClock(NOW_MS)
    address = TargetAddress("s3://news/copy", "hidden", "AKTEST", "", bucket.endpoint)
    async with opened_mirror(
        spec_of(address, pipelines), pipelines, DayCounter(clock), clock, Web(user_agent="tests")
    ) as mirror:
        await fill(mirror, world, pipelines)

    own = [key for key in bucket.puts if "bitcoin_news" in key or "articles" in key]
    cards = [place for place, key in enumerate(own) if "/articles/" in key]
    lists = [place for place, key in enumerate(own) if "/articles/" not in key]
    assert cards
    assert max(cards) < min(lists)
    assert own[-1] == "copy/tidings/bitcoin_news.json"
    assert json.loads(bucket.objects["copy/api/v1/bitcoin_news/articles.json"])["total"] == len(cards)


async def test_withdrawn_cards_leave_the_copy(world: World, pipelines: dict[str, Pipeline], tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    address = TargetAddress(f"file://{tmp_path}/copy")
    async with opened_mirror(
        spec_of(address, pipelines), pipelines, DayCounter(clock), clock, Web(user_agent="tests")
    ) as mirror:
        await fill(mirror, world, pipelines)
        plan = whole_plan(pipelines["bitcoin_news"])
        gone = next(each for each in whole_shelf(world.store.shelf, plan, newest=2_000) if each.key == "article:a0")
        await mirror.follow("bitcoin_news", [gone._replace(version=9_999, value=None)], "2")
        await mirror.flush(at_once=True)

    copy = tmp_path / "copy/api/v1/bitcoin_news"
    assert not (copy / "articles/a0.json").exists()
    assert "a0" not in [each["id"] for each in json.loads((copy / "articles.json").read_bytes())["articles"]]


def test_an_odd_public_address_is_refused() -> None:
    with pytest.raises(Misconfigured):
        StaticAnswers({}, "news.example")


async def test_lists_and_feeds_that_differ_are_found_and_repaired(
    world: World, pipelines: dict[str, Pipeline], tmp_path: Path
) -> None:
    clock, copy = ManualClock(NOW_MS), tmp_path / "copy"
    plan = whole_plan(pipelines["bitcoin_news"])
    wanted = whole_shelf(world.store.shelf, plan, newest=2_000)
    spec = spec_of(TargetAddress(f"file://{copy}"), pipelines)
    async with opened_mirror(spec, pipelines, DayCounter(clock), clock, Web(user_agent="tests")) as mirror:
        await fill(mirror, world, pipelines)
        assert (await check(mirror, plan, wanted)).is_none
        (copy / "api/v1/bitcoin_news/articles.json").write_text("{}")
        (copy / "feeds/bitcoin_news.rss").unlink()

        found, _ = await repair(mirror, plan, wanted)

        assert found.different == ["api/v1/bitcoin_news/articles.json"]
        assert found.missing == ["feeds/bitcoin_news.rss"]
        assert (await check(mirror, plan, wanted)).is_none


async def test_a_list_that_lags_behind_its_cards_is_no_difference(
    world: World, pipelines: dict[str, Pipeline], tmp_path: Path
) -> None:
    clock = ManualClock(NOW_MS)
    plan = whole_plan(pipelines["bitcoin_news"])
    wanted = whole_shelf(world.store.shelf, plan, newest=2_000)
    changed = next(each for each in wanted if each.key == "article:a0")
    changed = changed._replace(version=9_999, value=(changed.value or b"").replace(b'"a0"', b'"a0" ', 1))
    spec = replace(spec_of(TargetAddress(f"file://{tmp_path}/copy"), pipelines), pace=MirrorPace(0, 600, 2_000))
    async with opened_mirror(spec, pipelines, DayCounter(clock), clock, Web(user_agent="tests")) as mirror:
        await fill(mirror, world, pipelines)
        await mirror.follow("bitcoin_news", [changed], "2")
        await mirror.flush()

        now = [changed if each.key == changed.key else each for each in wanted]
        assert (await check(mirror, plan, now)).is_none
