"""Users of Hacker News, fetched when somebody asks for them: against a stand-in, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.engine import Engine
from tests.support.firebase import FirebaseApi
from tests.support.hacker_news import ask, client_of, engine_on
from tests.unit.serve.asgi import Answer

from tidings.discover.live import Granting
from tidings.store.wishes import WAITING_MAX

BROWSER = {"accept": "text/html"}
DAY = 86_400


@pytest.fixture
def api() -> FirebaseApi:
    api = FirebaseApi(seed=6)
    api.add(1, by="ada_l-1", title="What I found")
    api.users["ada_l-1"] = a_user("ada_l-1")
    return api


def a_user(name: str, **changes: Any) -> dict[str, Any]:
    about = 'I count.<p><script>alert(1)</script><a href="javascript:alert(2)">me</a> <b onclick="x()">bold</b>'
    return {"id": name, "created": 1_200_000_000, "karma": 815, "about": about, "submitted": [1, 2, 3], **changes}


async def grant(engine: Engine) -> None:
    """Do what the poller does every second."""
    (source,) = engine.wiring.pipelines[0].sources
    assert isinstance(source, Granting)
    await engine.app.poller.grant(source)
    await engine.work_until_idle()


async def user(engine: Engine, name: str) -> Answer:
    return await client_of(engine).get(f"/api/v1/hacker_news/users/{name}")


async def test_a_user_is_fetched_on_demand_and_harmless(database_url: str, api: FirebaseApi) -> None:
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        await engine.work_until_idle()
        first = await user(engine, "ada_l-1")
        page = await client_of(engine).get("/pipelines/hacker_news/users/ada_l-1", headers=BROWSER)
        assert (first.status, first.json, first.headers["retry-after"]) == (
            202,
            {"id": "ada_l-1", "state": "being fetched"},
            "2",
        )
        assert page.status == 202
        assert "Being fetched" in page.text
        assert api.requests["user/ada_l-1.json"] == 0
        await engine.reopen()
        await grant(engine)

        card = (await user(engine, "ada_l-1")).json
        assert (card["karma"], card["created"], card["created_at"]) == (815, 1_200_000_000, "2008-01-10T21:20:00Z")
        assert card["submissions"] == 3
        assert "script" not in card["about"]
        assert "javascript" not in card["about"]
        assert "onclick" not in card["about"]
        await engine.follow()
        page = await client_of(engine).get("/pipelines/hacker_news/users/ada_l-1", headers=BROWSER)
        assert page.status == 200
        assert "What I found" in page.text
        assert "<b>bold</b>" in page.text
        item = await client_of(engine).get("/pipelines/hacker_news/items/1", headers=BROWSER)
        assert 'href="/pipelines/hacker_news/users/ada_l-1"' in item.text
        assert api.requests["user/ada_l-1.json"] == 1


async def test_unknown_misnamed_and_unreadable_users(database_url: str, api: FirebaseApi) -> None:
    api.users |= {"torn": 500, "other": a_user("somebody"), "soup": {"id": "soup", "karma": "much"}}
    async with engine_on(database_url, api) as engine:
        for name in ("nobody", "torn", "other", "soup"):
            assert (await user(engine, name)).status == 202
        for name in ("..%2Fitem%2F1", "a%20b", "x" * 33, "%C3%A4da", "a?b"):
            assert (await user(engine, name)).status in (400, 404)
        await grant(engine)
        assert [(await user(engine, name)).status for name in ("nobody", "torn", "other", "soup")] == [
            404,
            503,
            503,
            503,
        ]
        assert (await client_of(engine).get("/pipelines/hacker_news/users/nobody", headers=BROWSER)).status == 404
        assert {path for path in api.requests if path.startswith("user/")} == {
            "user/nobody.json", "user/torn.json", "user/other.json", "user/soup.json",
        }  # fmt: skip
        # What failed is tried again when somebody asks a minute later, what is unknown an hour later.
        api.users["torn"] = a_user("torn")
        engine.advance_clock(seconds=61)
        assert [(await user(engine, name)).status for name in ("nobody", "torn")] == [404, 202]
        await grant(engine)
        assert (await user(engine, "torn")).json["karma"] == 815
        engine.advance_clock(seconds=3600)
        assert (await user(engine, "nobody")).status == 202


async def test_a_user_is_renewed_when_updates_name_them_and_when_old(database_url: str, api: FirebaseApi) -> None:
    async with engine_on(database_url, api) as engine:
        await user(engine, "ada_l-1")
        await grant(engine)
        api.users["ada_l-1"] = a_user("ada_l-1", karma=900)
        api.profiles = ["ada_l-1", "stranger", "../evil"]
        engine.advance_clock(seconds=900)
        await ask(engine)
        await grant(engine)
        assert (await user(engine, "ada_l-1")).json["karma"] == 900
        # Only who is shown is read again.
        assert [path for path in api.requests if path.startswith("user/")] == ["user/ada_l-1.json"]

        api.profiles = []
        api.users["ada_l-1"] = a_user("ada_l-1", karma=901)
        engine.advance_clock(seconds=DAY + 1)
        assert (await user(engine, "ada_l-1")).json["karma"] == 900
        await grant(engine)
        assert (await user(engine, "ada_l-1")).json["karma"] == 901


async def test_wishes_are_bounded_and_forgotten(database_url: str, api: FirebaseApi) -> None:
    async with engine_on(database_url, api) as engine:
        for number in range(WAITING_MAX):
            engine.store.wishes.wish("hacker_news", "users", f"u{number}")
        assert (await user(engine, "one_more")).status == 503
        assert (await user(engine, "u7")).status == 202
        engine.advance_clock(seconds=DAY + 1)
        assert (await engine.tidy())["wishes"] == WAITING_MAX


async def test_the_document_describes_users(database_url: str, api: FirebaseApi) -> None:
    async with engine_on(database_url, api) as engine:
        paths = (await client_of(engine).get("/openapi.json")).json["paths"]
        responses = paths["/api/v1/hacker_news/users/{id}"]["get"]["responses"]
        assert {"200", "202", "404", "503"} <= responses.keys()
        assert responses["202"]["content"]["application/json"]["schema"]["required"] == ["id", "state"]
