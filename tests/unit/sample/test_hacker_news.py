from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest
from tests.support.clock import ManualClock

from tidings.net.client import Web
from tidings.sample.hacker_news import HackerNews
from tidings.sample.serving import StandIn


@pytest.fixture
def clock():
    return ManualClock()


@asynccontextmanager
async def asking(world):
    async with StandIn(world.app) as server, Web(user_agent="tidings-test", endpoints=[server.url]) as web:

        async def get(path):
            answer = await web.call("GET", f"{server.url}/v0/{path}")
            return json.loads(answer.body) if answer.status == 200 else answer.status

        yield get


async def test_the_sample_world_is_served_as_the_api_would(clock):
    world = HackerNews.from_package(clock.now_ms(), now_ms=clock.now_ms)
    async with asking(world) as get:
        newest = await get("maxitem.json")
        story = await get("item/9000001.json")

        assert newest == world.newest_id()
        assert story["type"] == "story"
        assert story["time"] < clock.now_ms() // 1000
        assert "minutes_ago" not in story
        for listing in ("topstories", "newstories", "beststories", "askstories", "showstories", "jobstories"):
            ids = await get(f"{listing}.json")
            assert ids
            assert len(ids) == len(set(ids))


def test_every_kid_and_parent_of_the_sample_world_exists_and_agrees(clock):
    world = HackerNews.from_package(clock.now_ms(), now_ms=clock.now_ms)
    clock.advance(seconds=3600)
    items = world.items()

    for number, item in items.items():
        for kid in item.get("kids", []):
            assert items[kid]["parent"] == number
        for part in item.get("parts", []):
            assert items[part]["poll"] == number
        if "parent" in item:
            assert number in items[item["parent"]].get("kids", [])


async def test_things_arrive_and_change_with_the_clock(clock):
    world = HackerNews(now_ms=clock.now_ms)
    async with asking(world) as get:
        world.add(id=1, type="story", title="T", score=1)
        world.plan(clock.now_ms() + 30_000, {"id": 1, "score": 5, "kids": [2]})
        world.plan(clock.now_ms() + 30_000, {"id": 2, "type": "comment", "parent": 1, "text": "x"})

        before = await get("maxitem.json"), await get("item/2.json")
        clock.advance(seconds=31)
        after = await get("maxitem.json"), (await get("item/2.json"))["parent"], (await get("item/1.json"))["score"]

        assert (before, after) == ((1, None), (2, 1, 5))
        assert set((await get("updates.json"))["items"]) == {1, 2}
        clock.advance(seconds=3600)
        assert (await get("updates.json"))["items"] == []


async def test_missing_things_are_null_and_forbidden_ones_denied():
    world = HackerNews([{"id": 1, "type": "story", "by": "pg", "time": 5}])
    async with asking(world) as get:
        assert await get("item/2.json") is None
        assert await get("user/nobody.json") is None
        assert (await get("user/pg.json"))["submitted"] == [1]
        assert await get("secrets.json") == 401
        assert await get("item/1") == 404


async def test_an_item_can_be_hidden_changed_and_deleted(clock):
    world = HackerNews(now_ms=clock.now_ms)
    async with asking(world) as get:
        story = world.add(type="story", title="T", by="a", score=1)
        reply = world.add(type="comment", parent=story, text="x", by="b")

        world.hide(reply, 1)
        assert [await get(f"item/{reply}.json") is None for _ in range(2)] == [True, False]
        assert (await get(f"item/{story}.json"))["kids"] == [reply]
        world.delete(reply)
        assert set(await get(f"item/{reply}.json")) == {"deleted", "id", "parent", "time", "type"}


async def test_the_real_samples_can_be_served(samples):
    lines = (samples / "hackernews" / "threads_first_items.jsonl").read_text().splitlines()
    world = HackerNews(json.loads(line) for line in lines)

    async with asking(world) as get:
        assert (await get("item/3.json"))["by"] == "phyllis"
    assert len(world.items()) == 375
