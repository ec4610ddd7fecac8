"""The read-only server over a mirror gives the answers that the server with the database gives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace

import pytest
from tests.support.clock import ManualClock
from tests.unit.follow.mirrors.stream import NOW_MS, a_mirror
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World, a_world

from tidings.follow.mirrors.mirror import MirrorPace
from tidings.follow.mirrors.redis_target import RedisTarget
from tidings.follow.mirrors.whole_shelf import whole_shelf
from tidings.mirror_reader import ThreadExecutor, read_backend, whole_plan
from tidings.model.pipeline import Pipeline
from tidings.serve.application import build
from tidings.serve.read_only import build_reader

SAME = [
    "/api/v1/bitcoin_news/articles",
    "/api/v1/bitcoin_news/articles?sentiment=positive",
    "/api/v1/bitcoin_news/articles?limit=2",
    "/api/v1/bitcoin_news/articles/a0",
    "/api/v1/hacker_news/items",
    "/api/v1/hacker_news/items?type=comment&limit=3",
    "/api/v1/hacker_news/items/1",
    "/healthz",
]


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        yield world


@pytest.fixture
def pipelines(world: World) -> dict[str, Pipeline]:
    return {name: replace(each, announce={}) for name, each in world.pipelines.items()}


@pytest.fixture
async def mirrored(world: World, pipelines: dict[str, Pipeline], redis: RedisTarget) -> RedisTarget:
    plans = [whole_plan(each) for each in pipelines.values()]
    mirror = a_mirror(redis, ManualClock(NOW_MS), pace=MirrorPace(0, 0, 2_000), plans=plans)
    for plan in plans:
        await mirror.position(plan.name)
        await mirror.follow(plan.name, whole_shelf(world.store.shelf, plan, newest=2_000), "1")
    await mirror.flush(at_once=True)
    return redis


@pytest.fixture
async def reader(mirrored: RedisTarget, pipelines: dict[str, Pipeline]) -> AsyncIterator[Client]:
    executor = ThreadExecutor()
    yield Client(build_reader(read_backend(mirrored, pipelines, executor)))
    executor.close()


@pytest.mark.parametrize("path", SAME)
async def test_answers_are_those_of_the_whole_server(reader: Client, world: World, path: str) -> None:
    whole = Client(build(world.backend()))

    ours, theirs = await reader.get(path), await whole.get(path)

    assert ours.status == 200
    assert ours.json == theirs.json


async def test_pages_go_on_where_the_last_one_ended(reader: Client) -> None:
    seen: list[str] = []
    path: str | None = "/api/v1/bitcoin_news/articles?limit=2"
    while path is not None:
        page = (await reader.get(path)).json
        seen += [card["id"] for card in page["articles"]]
        cursor = page["next_cursor"]
        path = f"/api/v1/bitcoin_news/articles?limit=2&cursor={cursor}" if cursor is not None else None

    assert len(seen) == len(set(seen)) == page["total"]


async def test_a_thread_is_read_from_the_cards(reader: Client, world: World) -> None:
    whole = Client(build(world.backend()))
    stories = (await whole.get("/api/v1/hacker_news/items", type="story")).json["items"]
    root = next(story["id"] for story in stories if story.get("kids"))

    thread = (await reader.get(f"/api/v1/hacker_news/items/{root}/thread")).json

    assert [child["id"] for child in thread["children"]] == thread["kids"]


@pytest.mark.parametrize("form", ["rss", "atom", "json"])
async def test_feeds_list_the_newest_cards(reader: Client, form: str) -> None:
    articles = (await reader.get("/api/v1/bitcoin_news/articles")).json["articles"]

    feed = await reader.get(f"/feeds/bitcoin_news.{form}")

    assert feed.status == 200
    assert all(article["link"] in feed.text for article in articles)


async def test_a_search_is_refused_with_a_reason(reader: Client) -> None:
    answer = await reader.get("/feeds/bitcoin_news.rss", q="fees")

    assert answer.status == 400
    assert "a mirror has no search" in answer.json["detail"]
    assert (await reader.get("/api/v1/bitcoin_news/search", q="fees")).status == 404


async def test_a_card_that_is_listed_and_gone_is_named(reader: Client, mirrored: RedisTarget) -> None:
    await mirrored.delete_many(["article:a0"])

    answer = await reader.get("/api/v1/bitcoin_news/articles")

    assert answer.status == 200
    assert answer.json["warnings"] == ["article a0 is listed and not on the shelf"]
    assert "a0" not in [card["id"] for card in answer.json["articles"]]


async def test_a_card_that_is_gone_from_a_list_by_time_is_named_and_cuts_nothing_off(
    reader: Client, world: World, mirrored: RedisTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = world.store.shelf.newest("hacker_news", "items", limit=100)
    ids = [entry.key.removeprefix("item:") for entry in entries]
    await mirrored.delete_many([f"item:{ids[1]}"])
    monkeypatch.setattr("tidings.serve.api.listings._PAGE", 3)
    listing = (await reader.get("/api/v1/hacker_news/items?limit=100")).json
    assert [str(card["id"]) for card in listing["items"]] == [each for each in ids if each != ids[1]]
    assert listing["warnings"] == [f"item {ids[1]} is listed and not on the shelf"]


async def test_nothing_can_be_written(reader: Client) -> None:
    assert (await reader.post("/api/v1/hacker_news/items", {"id": 1})).status in (404, 405)


async def test_a_mirror_that_does_not_answer_is_a_503(pipelines: dict[str, Pipeline]) -> None:
    executor = ThreadExecutor()
    gone = RedisTarget("redis://127.0.0.1:1/0")
    client = Client(build_reader(read_backend(gone, pipelines, executor)))

    lists, ready = await asyncio.gather(client.get("/api/v1/bitcoin_news/articles"), client.get("/readyz"))

    assert (lists.status, ready.status) == (503, 503)
    assert lists.headers["retry-after"] == "5"
    assert (await client.get("/healthz")).status == 200
    executor.close()
    await gone.close()


async def test_a_public_server_answers_strangers(mirrored: RedisTarget, pipelines: dict[str, Pipeline]) -> None:
    executor = ThreadExecutor()
    hosts = frozenset({"news.example"})
    backend = read_backend(mirrored, pipelines, executor, loopback=False, hosts=hosts, token="a-long-secret")
    path = "/api/v1/bitcoin_news/articles"

    closed, public = build_reader(backend), build_reader(backend, is_public=True)

    assert (await Client(closed, host="news.example", peer="203.0.113.9").get(path)).status == 401
    assert (await Client(closed, host="news.example", token="a-long-secret").get(path)).status == 200
    assert (await Client(public, host="news.example", peer="203.0.113.9").get(path)).status == 200
    executor.close()


async def test_a_card_of_a_list_that_is_held_is_not_asked_for_again(
    mirrored: RedisTarget, reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = (await reader.get("/api/v1/bitcoin_news/articles")).json["articles"]
    keys: list[str] = []
    get_many = mirrored.get_many

    async def watched(wanted: Sequence[str]) -> dict[str, bytes]:
        keys.extend(wanted)
        return await get_many(wanted)

    monkeypatch.setattr(mirrored, "get_many", watched)
    for card in listed:
        assert (await reader.get(f"/api/v1/bitcoin_news/articles/{card['id']}")).json == card
    assert (await reader.get("/api/v1/bitcoin_news/articles/none")).status == 404

    assert keys == []
