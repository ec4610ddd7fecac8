"""The lists of Hacker News as they rank now: over real HTTP, against a stand-in, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.engine import Engine
from tests.support.firebase import FirebaseApi
from tests.support.hacker_news import ask, engine_on
from tests.unit.serve.asgi import Client

from tidings.app import backend_of
from tidings.serve.application import build

SERVER: dict[str, Any] = {"hosts": [], "root_path": "", "cors_origins": []}


@pytest.fixture
def api() -> FirebaseApi:
    return FirebaseApi(seed=4)


def client_of(engine: Engine) -> Client:
    return Client(build(backend_of(engine.app, SERVER, loopback=True)))


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
