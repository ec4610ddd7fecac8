"""The history of points, comments and rank of Hacker News items: against a stand-in, on both databases."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from tests.support.engine import Engine
from tests.support.firebase import FirebaseApi
from tests.support.hacker_news import ask, client_of, engine_on

DAY = 86_400


@pytest.fixture
def api() -> FirebaseApi:
    api = FirebaseApi(seed=5)
    api.add(1, 2, 3)
    api.lists = {"topstories": [1, 2], "newstories": [], "beststories": [2]}
    return api


async def run(engine: Engine, *, minutes: int = 5) -> None:
    engine.advance_clock(seconds=60 * minutes)
    assert (await ask(engine)).error is None
    await engine.work_until_idle()


async def history(engine: Engine, number: int) -> list[dict[str, Any]]:
    answer = await client_of(engine).get(f"/api/v1/hacker_news/items/{number}/history")
    assert answer.status == 200
    points: list[dict[str, Any]] = answer.json["points"]
    return points


def told(points: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(each.get("score"), each.get("descendants"), each["ranks"]) for each in points]


async def test_points_comments_and_ranks_are_noted_as_they_change(database_url: str, api: FirebaseApi) -> None:
    async with engine_on(database_url, api) as engine:
        await run(engine)  # Its cards are not there yet when the lists are reported.
        await run(engine)
        await run(engine)
        api.change(1, score=40, descendants=7)
        api.lists["topstories"] = [2, 1]
        await run(engine)
        await run(engine)
        await engine.reopen()
        api.lists["topstories"] = [2]
        api.change(1, score=90)
        await run(engine)

        points = await history(engine, 1)
        assert told(points) == [(1, None, {"top": 1}), (1, None, {"top": 2}), (40, 7, {"top": 2})]
        assert points == sorted(points, key=lambda each: str(each["at"]))
        assert told(await history(engine, 2))[0] == (1, None, {"top": 2, "best": 1})
        assert await history(engine, 3) == []

        page = (await client_of(engine).get("/pipelines/hacker_news/items/1", headers={"accept": "text/html"})).text
        words = " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())
        assert "Points 40, from 1" in words
        assert "Rank, front page 2, best 1" in words
        assert '<svg viewBox="0 0 600 100"' in page
        assert "<caption>Points</caption>" in page
        assert "How it went" not in (await client_of(engine).get("/pipelines/hacker_news/items/3")).text


async def test_points_keep_their_distance_and_go_with_age(database_url: str, api: FirebaseApi) -> None:
    async with engine_on(database_url, api, history_every="10 min") as engine:
        await run(engine)
        for score in range(10, 16):
            api.change(1, score=score)
            await run(engine)
        points = await history(engine, 1)
        assert len(points) == 3
        engine.advance_clock(seconds=29 * DAY)
        await engine.tidy()
        assert await history(engine, 1) == points
        engine.advance_clock(seconds=2 * DAY)
        assert (await engine.tidy())["tracks"] == 2
        assert await history(engine, 1) == []


async def test_an_unknown_item_has_no_history(database_url: str, api: FirebaseApi) -> None:
    async with engine_on(database_url, api) as engine:
        assert (await client_of(engine).get("/api/v1/hacker_news/items/77/history")).status == 404
        described = (await client_of(engine).get("/openapi.json")).json["paths"]
        answer = described["/api/v1/hacker_news/items/{id}/history"]["get"]["responses"]["200"]
        point = answer["content"]["application/json"]["schema"]["properties"]["points"]["items"]
        assert {"at", "score", "descendants", "ranks"} == point["properties"].keys()
