"""The lists of Hacker News as they rank now, and what is new in its threads: against a stand-in, on both databases."""

from __future__ import annotations

import pytest
from tests.support.engine import Engine
from tests.support.firebase import FirebaseApi
from tests.support.hacker_news import ask, client_of, engine_on


@pytest.fixture
def api() -> FirebaseApi:
    return FirebaseApi(seed=4)


async def ranks(engine: Engine, name: str) -> list[tuple[int, str, bool]]:
    """Read a list by the API: rank, id, and whether its card is here."""
    answer = (await client_of(engine).get(f"/api/v1/hacker_news/lists/{name}")).json
    return [(place["rank"], place["id"], place["item"] is not None) for place in answer["items"]]


async def test_lists_rank_as_the_api_ranks_them_now(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 11))
    api.lists = {"topstories": [7, 3, 9, 3, 5_000], "jobstories": [2]}
    async with engine_on(database_url, api, list_size=4) as engine:
        await ask(engine)
        await engine.work_until_idle()
        assert await ranks(engine, "top") == [(1, "7", True), (2, "3", True), (3, "9", True)]
        assert await ranks(engine, "job") == [(1, "2", True)]
        assert await ranks(engine, "ask") == []

        api.lists["topstories"] = [9, 5_000, 7]
        api.change(7, deleted=True, title=None, by=None)
        await ask(engine)
        await engine.reopen()
        await engine.work_until_idle()
        # An id of the future keeps its rank, without a card; what was deleted is marked as such.
        assert await ranks(engine, "top") == [(1, "9", True), (2, "5000", False), (3, "7", True)]
        answer = (await client_of(engine).get("/api/v1/hacker_news/lists/top")).json
        assert answer["items"][2]["item"]["deleted"]
        assert "title" not in answer["items"][2]["item"]


async def test_an_order_stays_when_its_list_cannot_be_read(database_url: str, api: FirebaseApi) -> None:
    api.add(1, 2)
    api.lists = {"topstories": [2, 1]}
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        await engine.work_until_idle()
        api.lists["topstories"] = {"error": "soup"}
        assert (await ask(engine)).error is not None
        assert await ranks(engine, "top") == [(1, "2", True), (2, "1", True)]


async def test_what_is_new_in_a_thread_is_told_since_a_mark(database_url: str, api: FirebaseApi) -> None:
    api.add(1, kids=[2])
    api.add(2, type="comment", parent=1, title=None, text="First")
    thread = "/api/v1/hacker_news/items/1/thread"
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        await engine.work_until_idle()
        mark = (await client_of(engine).get(thread)).json["mark"]
        api.add(3, type="comment", parent=2, title=None, text="Second")
        api.change(2, kids=[3], text="First, edited")
        await ask(engine)
        await engine.work_until_idle()
        news = (await client_of(engine).get(thread, since=mark)).json
        assert news["new_places"] == 1
        assert news["children"][0]["text"] == "First, edited"
        assert [(kid["id"], kid["new"]) for kid in news["children"][0]["children"]] == [(3, True)]
