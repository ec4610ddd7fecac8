"""The API over the real store: what goes in by POST comes out as cards, threads, search hits and feeds."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import feedparser
import msgspec
from tests.support.engine import Engine
from tests.support.waiting import until
from tests.unit.serve.asgi import Client

from tidings.backends import backend_of
from tidings.config import Server
from tidings.model.item import Finding
from tidings.pipelines import bitcoin_news, hacker_news
from tidings.pipelines.bitcoin_news.body import Article
from tidings.serve.application import build

ITEMS = "/api/v1/hacker_news/items"
ARTICLES = "/api/v1/bitcoin_news/articles"
SMALL_WORLD: list[dict[str, Any]] = [
    {"id": 1, "type": "story", "by": "ada", "time": 1_700_000_000, "title": "A queue in one file", "score": 120,
     "url": "https://blog.example/queue", "kids": [3, 2], "descendants": 3},
    {"id": 2, "type": "comment", "by": "bob", "time": 1_700_000_100, "text": "I <i>like</i> loops", "parent": 1,
     "kids": [4]},
    {"id": 3, "type": "comment", "by": "cyd", "time": 1_700_000_200, "text": "Loops all the way", "parent": 1},
    {"id": 4, "type": "comment", "time": 1_700_000_300, "parent": 2, "deleted": True},
]  # fmt: skip


def engine(database_url: str) -> Engine:
    stories = hacker_news.build(hacker_news.Settings())
    news = bitcoin_news.build(bitcoin_news.Settings(feeds=()))
    return Engine(database_url, [stories, news])


def client_of(running: Engine, token: str | None = None, **changes: Any) -> Client:
    backend = backend_of(running.app, Server().model_dump(), loopback=True, **changes)
    return Client(build(backend), token=token)


async def test_what_is_posted_can_be_read_searched_and_followed(database_url: str) -> None:
    async with engine(database_url) as running:
        token = running.store.tokens.create("test", "ingest")
        client = client_of(running, token)
        lines = "\n".join(json.dumps(item) for item in SMALL_WORLD)

        bulk = await client.post(
            f"{ITEMS}/bulk",
            content=f"{lines}\nnot json\n".encode(),
            headers={"content-type": "application/x-ndjson", "idempotency-key": "first"},
        )
        again = await client.post(
            f"{ITEMS}/bulk",
            content=f"{lines}\nnot json\n".encode(),
            headers={"content-type": "application/x-ndjson", "idempotency-key": "first"},
        )
        await running.work_until_idle()
        await running.follow()
        one = await client.get(f"{ITEMS}/1")
        thread = await client.get(f"{ITEMS}/1/thread")
        found = await client.get("/api/v1/hacker_news/search", q="loops", type="comment")
        feed = feedparser.parse((await client.get("/feeds/hacker_news.atom", q="type:story")).body)

        assert bulk.status == 202
        assert bulk.json["accepted"] == 4
        assert [each["line"] for each in bulk.json["rejected"]] == [5]
        assert again.json == bulk.json
        assert one.json["title"] == "A queue in one file"
        assert [child["id"] for child in thread.json["children"]] == [3, 2]
        assert thread.json["children"][1]["children"][0]["deleted"] is True
        assert {hit["id"] for hit in found.json["hits"]} == {"2", "3"}
        assert all("<mark>" in hit["snippet"].lower() for hit in found.json["hits"])
        assert [entry.title for entry in feed.entries] == ["A queue in one file"]


async def test_using_a_token_is_noted_and_a_revoked_one_refused(database_url: str) -> None:
    async with engine(database_url) as running:
        tokens = running.store.tokens
        token, _unused = tokens.create("reader", "read"), tokens.create("unused", "read")

        assert (await client_of(running, token).get("/api/v1/status")).status == 200

        async def is_noted() -> bool:
            return {view.name for view in tokens.list() if view.last_used_at is not None} == {"reader"}

        await until(is_noted)
        tokens.revoke("reader")
        assert (await client_of(running, token).get("/api/v1/status")).status == 401
        assert (await client_of(running).get("/api/v1/status")).status == 200


async def test_a_second_upload_changes_nothing_and_a_changed_item_is_seen(database_url: str) -> None:
    async with engine(database_url) as running:
        client = client_of(running, running.store.tokens.create("test", "ingest"))
        await client.post(f"{ITEMS}/bulk", SMALL_WORLD)
        await running.work_until_idle()
        before = await client.get(f"{ITEMS}/1")

        repeated = await client.post(f"{ITEMS}/bulk", SMALL_WORLD)
        changed = await client.post(ITEMS, {**SMALL_WORLD[0], "score": 500})
        await running.work_until_idle()

        async def is_seen() -> bool:
            return bool((await client.get(f"{ITEMS}/1")).json["score"] == 500)

        await until(is_seen)
        after = await client.get(f"{ITEMS}/1", headers={"if-none-match": before.headers["etag"]})
        assert repeated.json["accepted"] == 0
        assert repeated.json["duplicate"] == 4
        assert changed.json["changed"] == 1
        assert after.status == 200


async def test_parents_and_kids_are_joined_on_cards_whoever_said_so(database_url: str) -> None:
    comment = {"type": "comment", "by": "bob", "time": 1_700_000_100, "text": "x"}
    world = [
        {"id": 1, "type": "story", "title": "Claims its reply", "time": 1_700_000_000, "kids": [3]},
        {"id": 2, "type": "story", "title": "Is named by mistake", "time": 1_700_000_000},
        {"id": 3, **comment, "parent": 2},
        {"id": 4, **comment, "parent": 3},
    ]
    async with engine(database_url) as running:
        client = client_of(running, running.store.tokens.create("test", "ingest"))
        await client.post(f"{ITEMS}/bulk", world)
        await running.work_until_idle()

        cards = {number: (await client.get(f"{ITEMS}/{number}")).json for number in (1, 2, 3, 4)}
        assert (cards[3]["parent"], cards[3]["kids"], cards[4]["parent"]) == (1, [4], 3)
        assert (cards[1]["kids"], cards[2].get("kids")) == ([3], None)
        thread = (await client.get(f"{ITEMS}/1/thread")).json
        assert (thread["children"][0]["parent"], thread["children"][0]["children"][0]["id"]) == (1, 4)


async def test_articles_are_listed_through_the_id_index(database_url: str) -> None:
    async with engine(database_url) as running:
        now = running.now_ms()
        findings = []
        for number in range(12):
            article = Article(
                id=f"a{number}",
                title=f"Headline {number}",
                link=f"https://news.example/{number}",
                source="The Post",
                published_ms=now - number * 60_000,
                found_ms=now,
                provider_sentiment="positive" if number % 3 == 0 else None,
            )
            findings.append(Finding("bitcoin_news", "article", article.id, str(number), msgspec.json.encode(article)))
        running.store.intake.append("bitcoin_news", findings)
        running.store.intake.merge("bitcoin_news")
        client = client_of(running)

        everything = await client.get(ARTICLES)
        positive = await client.get(ARTICLES, sentiment="positive", limit=3)
        rest = await client.get(ARTICLES, sentiment="positive", cursor=positive.json["next_cursor"])

        assert [card["id"] for card in everything.json["articles"]] == [f"a{n}" for n in range(12)]
        assert everything.json["sentiment_counts"]["positive"] == 4
        assert everything.json["sentiment_counts"]["unknown"] == 8
        assert [c["id"] for c in positive.json["articles"] + rest.json["articles"]] == ["a0", "a3", "a6", "a9"]
        assert everything.json["articles"][0]["needs_summary"] is True


async def test_two_servers_on_one_store_answer_alike(database_url: str) -> None:
    async with engine(database_url) as running:
        token = running.store.tokens.create("test", "operate")
        one, other = client_of(running, token), client_of(running, token)
        await one.post(f"{ITEMS}/bulk", SMALL_WORLD)
        await running.work_until_idle()
        paths = [f"{ITEMS}", f"{ITEMS}/1", f"{ITEMS}/1/thread", "/api/v1/search?q=loops", "/feeds/hacker_news.rss"]

        answers = [(await one.get(path), await other.get(path)) for path in paths]

        assert all(first.body == second.body for first, second in answers)
        assert all(first.headers["etag"] == second.headers["etag"] for first, second in answers)


async def test_an_items_life_is_told_by_its_opaque_id(database_url: str) -> None:
    async with engine(database_url) as running:
        token = running.store.tokens.create("test", "operate")
        client = client_of(running, token)
        await client.post(f"{ITEMS}/bulk", [*SMALL_WORLD, {"id": 9, "type": "banana", "time": 1_700_000_000}])
        await running.work_until_idle()

        rows = (await client.get("/api/v1/items", pipeline="hacker_news", kind="item", key="9")).json["items"]
        item = await client.get(f"/api/v1/items/{rows[0]['id']}")
        done = await client.get("/api/v1/items", pipeline="hacker_news", kind="item", key="1")
        failed = await client.post(
            f"/api/v1/items/{done.json['items'][0]['id']}/transitions/mark_failed", {"reason": "x"}
        )
        refused = await client.post(f"/api/v1/items/{done.json['items'][0]['id']}/transitions/index_item")

        assert item.json["item"]["state"] == "failed"
        assert "banana" in item.json["item"]["last_error"]
        assert failed.status == 200
        assert failed.json["item"]["state"] == "failed"
        assert failed.json["life"][-1]["actor"] == "api (operate)"
        assert refused.status == 409


async def test_events_are_told_in_order_and_resumed(database_url: str) -> None:
    async with engine(database_url) as running:
        client = client_of(running, running.store.tokens.create("test", "ingest"))
        await client.post(f"{ITEMS}/bulk", SMALL_WORLD)
        await running.work_until_idle()
        events = await asyncio.to_thread(running.store.item_views.events, after=0, limit=500)

        assert [event.id for event in events] == sorted(event.id for event in events)
        assert {event.key for event in events} >= {"1", "2", "3", "4"}
