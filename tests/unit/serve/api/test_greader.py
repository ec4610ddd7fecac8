"""The Google Reader API: signing in, subscriptions, streams with continuation, marks; by tokens alone."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from tests.unit.serve.asgi import Answer, Client
from tests.unit.serve.world import World

from tidings.serve.application import build

ROOT = "/api/greader.php"
API = f"{ROOT}/reader/api/0"
LIST = "user/-/state/com.google/reading-list"
READ, STARRED = "user/-/state/com.google/read", "user/-/state/com.google/starred"
FORM = {"content-type": "application/x-www-form-urlencoded"}


class ReaderApp:
    """A client as phones have it."""

    def __init__(self, world: World, token: str = "marker") -> None:
        self.client = Client(build(world.backend()))
        self.headers = {"authorization": f"GoogleLogin auth={token}"}

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self.raw(path, **query)
        assert answer.status == 200, answer.text
        return answer.json

    async def raw(self, path: str, **query: Any) -> Answer:
        return await self.client.get(f"{API}/{path}", self.headers, **query)

    async def post(self, path: str, *fields: tuple[str, str]) -> Answer:
        body = urlencode(fields).encode()
        return await self.client.send("POST", f"{API}/{path}", headers={**self.headers, **FORM}, content=body)

    async def ids(self, stream: str = LIST, **more: Any) -> list[str]:
        answer = await self.get("stream/items/ids", s=stream, n=1000, **more)
        return [each["id"] for each in answer["itemRefs"]]


@pytest.fixture
def app(world: World) -> ReaderApp:
    return ReaderApp(world)


@pytest.mark.parametrize("prefix", [ROOT, ""])
async def test_a_token_signs_in_under_both_addresses(client: Client, prefix: str):
    signed = await client.form(f"{prefix}/accounts/ClientLogin", {"Email": "ann", "Passwd": "marker"})
    wrong = await client.form(f"{prefix}/accounts/ClientLogin", {"Email": "ann", "Passwd": "guess"})
    weak = await client.form(f"{prefix}/accounts/ClientLogin", {"Email": "ann", "Passwd": "reader"})
    assert "Auth=marker\n" in signed.text
    assert (wrong.status, weak.status) == (401, 401)


async def test_without_the_header_nothing_is_told_even_on_this_machine(client: Client, app: ReaderApp):
    for headers in ({}, {"authorization": "GoogleLogin auth=guess"}, {"authorization": "Bearer marker"}):
        answer = await client.get(f"{API}/subscription/list", headers)
        assert (answer.status, answer.headers["x-reader-google-bad-token"]) == (401, "true")
    assert (await client.form(f"{API}/edit-tag", {"i": "1", "a": READ})).status == 401


async def test_pipelines_and_searches_are_subscriptions_in_folders(app: ReaderApp):
    saved = await app.client.send(
        "PUT", "/api/v1/searches/heads", headers={"content-type": "application/json"}, content=b'{"query": "headline"}'
    )
    assert saved.status == 200
    found = (await app.get("subscription/list", output="json"))["subscriptions"]
    assert {each["id"] for each in found} == {
        "feed/pipeline:bitcoin_news",
        "feed/pipeline:hacker_news",
        "feed/search:heads",
    }
    assert {each["categories"][0]["label"] for each in found} == {"Pipelines", "Saved searches"}
    tags = [each["id"] for each in (await app.get("tag/list"))["tags"]]
    assert tags == [STARRED, "user/-/label/Pipelines", "user/-/label/Saved searches"]


async def test_streams_go_on_where_they_ended_in_both_orders(app: ReaderApp):
    whole = await app.ids()
    assert len(whole) >= 9
    assert await app.ids(r="o") == whole[::-1]
    for more in ({}, {"r": "o"}):
        paged: list[str] = []
        rest: dict[str, str] = {}
        while True:
            page = await app.get("stream/items/ids", s=LIST, n=2, **more, **rest)
            paged += [each["id"] for each in page["itemRefs"]]
            if "continuation" not in page:
                break
            rest = {"c": page["continuation"]}
        assert paged == (whole[::-1] if more else whole)


async def test_a_label_and_a_feed_are_streams(app: ReaderApp):
    news = await app.ids("feed/pipeline:bitcoin_news")
    assert 0 < len(news) < len(await app.ids())
    assert sorted(await app.ids("user/1/label/Pipelines")) == sorted(await app.ids())
    assert await app.ids("feed/nothing") == []


async def test_items_are_told_whole_by_every_form_of_their_id(app: ReaderApp):
    first = int((await app.ids("feed/pipeline:bitcoin_news"))[0])
    forms = [f"tag:google.com,2005:reader/item/{first:016x}", f"tag:google.com,2005:reader/item/{first:x}",
             f"{first:016x}", str(first)]  # fmt: skip
    for form in forms:
        answer = await app.post("stream/items/contents", ("i", form), ("output", "json"))
        [item] = answer.json["items"]
        assert item["id"] == forms[0]
        assert item["title"].startswith("Headline")
        assert item["canonical"][0]["href"].startswith("https://news.example/")
        assert "Summary of" in item["content"]["content"]
        assert item["origin"]["streamId"] == "feed/pipeline:bitcoin_news"
    assert (await app.post("stream/items/contents", ("i", "x y"))).status == 400


async def test_marks_are_kept_and_told(app: ReaderApp):
    first, second, *rest = await app.ids()
    marked = await app.post("edit-tag", ("i", first), ("a", READ), ("T", "any"))
    await app.post("edit-tag", ("i", second), ("a", STARRED))

    assert marked.text == "OK"
    assert await app.ids(xt=READ) == [second, *rest]
    assert await app.ids(STARRED) == [second]
    assert await app.ids(READ) == [first]
    await app.post("edit-tag", ("i", first), ("r", READ))
    await app.post("edit-tag", ("i", second), ("r", STARRED))
    assert await app.ids(xt=READ) == [first, second, *rest]
    assert await app.ids(STARRED) == []


async def test_a_whole_stream_is_marked_and_counts_follow(app: ReaderApp, world: World):
    def counts(answer: Any) -> dict[str, int]:
        return {each["id"]: each["count"] for each in answer["unreadcounts"]}

    before = counts(await app.get("unread-count"))
    now = str(world.store.now_ms() * 1000)
    await app.post("mark-all-as-read", ("s", "feed/pipeline:bitcoin_news"), ("ts", now))
    after = counts(await app.get("unread-count"))
    assert before["feed/pipeline:bitcoin_news"] > 0
    assert after["feed/pipeline:bitcoin_news"] == 0
    assert after["feed/pipeline:hacker_news"] == before["feed/pipeline:hacker_news"] > 0
    early = await app.post("mark-all-as-read", ("s", "feed/pipeline:hacker_news"), ("ts", "1000"))
    assert early.text == "OK"
    assert counts(await app.get("unread-count"))["feed/pipeline:hacker_news"] == before["feed/pipeline:hacker_news"]


async def test_subscriptions_are_changed_by_operators_only(app: ReaderApp, world: World):
    put = {"content-type": "application/json"}
    await app.client.send("PUT", "/api/v1/searches/heads", headers=put, content=b'{"query": "headline"}')
    edit = (("ac", "edit"), ("s", "feed/search:heads"), ("t", "News"))
    operator = ReaderApp(world, "operator")
    assert (await app.post("subscription/edit", *edit)).status == 403
    assert (await operator.post("subscription/edit", *edit)).text == "OK"
    titles = [each["title"] for each in (await app.get("subscription/list"))["subscriptions"]]
    assert "News" in titles
    assert (await operator.post("subscription/edit", ("ac", "unsubscribe"), ("s", "feed/search:heads"))).text == "OK"
    assert len((await app.get("subscription/list"))["subscriptions"]) == 2
    foreign = await operator.post("subscription/edit", ("ac", "unsubscribe"), ("s", "feed/pipeline:hacker_news"))
    assert foreign.status == 400


async def test_probes_are_answered(app: ReaderApp):
    assert await app.get("preference/list") == {}
    assert (await app.get("user-info"))["userName"] == "reader"
    assert len((await app.raw("token")).text) == 57


async def test_a_reader_named_by_the_token_has_marks_of_their_own(world: World):
    ann = ReaderApp(world, world.store.tokens.create("ann", "reader", "ann"))
    first = (await ann.ids())[0]
    await ann.post("edit-tag", ("i", first), ("a", READ))
    assert first not in await ann.ids(xt=READ)
    assert first in await ReaderApp(world).ids(xt=READ)
