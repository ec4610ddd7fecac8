"""Marks over HTTP: what a reader has read and starred, lists of what is left, searches that are kept."""

from __future__ import annotations

from typing import Any

from tests.unit.serve.asgi import Answer, Client
from tests.unit.serve.world import World

from tidings.serve.application import build

PUT = {"content-type": "application/json"}


async def entries(client: Client, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get("/api/v1/reading", **query)
    assert answer.status == 200, answer.text
    return answer.json["entries"]


async def put(client: Client, path: str, body: str) -> Answer:
    return await client.send("PUT", path, headers=PUT, content=body.encode())


async def test_the_list_holds_what_stands_for_itself_newest_first(client: Client):
    found = await entries(client, limit=200)
    titles = [each["card"].get("title") for each in found]
    assert "One file and a loop" in titles
    assert "Headline 0" in titles
    assert all(each["card"].get("type") != "comment" for each in found)
    assert not any(each["read"] or each["starred"] for each in found)


async def test_pages_follow_each_other_without_gap_or_repetition(client: Client):
    whole = [each["item"] for each in await entries(client, limit=200)]
    paged: list[int] = []
    cursor: dict[str, Any] = {}
    while True:
        page = (await client.get("/api/v1/reading", limit=3, **cursor)).json
        paged += [each["item"] for each in page["entries"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert paged == whole
    assert len(whole) == len(set(whole)) >= 9


async def test_a_mark_changes_the_lists(client: Client):
    first, second, *rest = [each["item"] for each in await entries(client)]
    read = await put(client, f"/api/v1/marks/{first}", '{"read": true}')
    starred = await put(client, f"/api/v1/marks/{second}", '{"starred": true}')

    assert read.json == {"item": first, "read": True, "starred": False}
    assert starred.json == {"item": second, "read": False, "starred": True}
    assert [each["item"] for each in await entries(client)] == [second, *rest]
    assert [each["item"] for each in await entries(client, show="starred")] == [second]
    assert [each["item"] for each in await entries(client, show="all")] == [first, second, *rest]
    back = await put(client, f"/api/v1/marks/{first}", '{"read": false}')
    assert back.json["read"] is False


async def test_many_are_marked_at_once_and_limits_hold(client: Client):
    items = [each["item"] for each in await entries(client)]
    assert (await client.post("/api/v1/marks", {"items": items, "read": True})).json == {"marked": len(items)}
    assert await entries(client) == []
    assert (await client.post("/api/v1/marks", {"items": list(range(1, 1_002)), "read": True})).status == 400
    assert (await client.post("/api/v1/marks", {"items": [0], "read": True})).status == 400
    assert (await put(client, "/api/v1/marks/999999", '{"read": true}')).status == 404
    assert (await put(client, f"/api/v1/marks/{items[0]}", "{}")).status == 400


async def test_each_reader_has_marks_of_their_own(world: World):
    app = build(world.backend())
    ann, bob = (Client(app, token=world.store.tokens.create(name, "reader", name)) for name in ("ann", "bob"))
    first = (await entries(ann))[0]["item"]
    await put(ann, f"/api/v1/marks/{first}", '{"read": true, "starred": true}')

    assert first not in [each["item"] for each in await entries(ann)]
    assert first in [each["item"] for each in await entries(bob)]
    assert first in [each["item"] for each in await entries(Client(app))]


async def test_a_token_that_may_only_read_sets_no_mark(world: World):
    app = build(world.backend())
    refused = await put(Client(app, token="reader"), "/api/v1/marks/1", '{"read": true}')
    foreign = Client(app)
    foreign.headers["sec-fetch-site"] = "cross-site"
    assert refused.status == 403
    assert (await put(foreign, "/api/v1/marks/1", '{"read": true}')).status == 403


async def test_a_saved_search_is_a_list_a_feed_and_an_address(client: Client):
    saved = await put(client, "/api/v1/searches/heads", '{"query": "headline", "title": "Heads"}')
    found = await entries(client, view="search:heads", show="all")
    feed = await client.get("/feeds/searches/heads.atom")

    assert saved.status == 200, saved.text
    assert (await client.get("/api/v1/searches")).json["searches"][0]["query"] == "headline"
    assert {each["pipeline"] for each in found} == {"bitcoin_news"}
    assert "Headline 0" in feed.text
    assert (await put(client, "/api/v1/searches/bad", '{"query": "score:>x"}')).status == 400
    assert (await client.send("DELETE", "/api/v1/searches/heads")).json["title"] == "Heads"
    assert (await client.get("/feeds/searches/heads.atom")).status == 404
    assert (await client.get("/api/v1/reading?view=search:heads")).status == 404


async def test_one_pipeline_is_a_view(client: Client):
    found = await entries(client, view="pipeline:hacker_news")
    assert {each["pipeline"] for each in found} == {"hacker_news"}
