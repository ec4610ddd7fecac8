"""Ranked lists as data, as feeds and on pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import feedparser
import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import Story, World, filled_file, news_pipeline, threaded_pipeline

from tidings.model.errors import BadInput, Misconfigured
from tidings.model.pipeline import Ranking
from tidings.model.publication import RankedList
from tidings.serve.application import build

TOP = "/api/v1/hacker_news/lists/top"
BROWSER = {"accept": "text/html"}


@pytest.fixture
def world() -> Iterator[World]:
    lists = (RankedList("top", "Front page", "items", length_max=4), RankedList("new", "New", "items"))
    with World(news_pipeline(), replace(threaded_pipeline(), lists=lists), copy_of=filled_file()) as world:
        yield world


@pytest.fixture
def client(world: World) -> Client:
    return Client(build(world.backend()))


def rank(world: World, name: str, *ids: int) -> None:
    world.store.intake.append("hacker_news", [], rankings=[Ranking(name, tuple(map(str, ids)))])


async def test_a_list_has_the_ranks_of_its_source_and_says_what_is_not_here(world: World, client: Client):
    rank(world, "top", 10, 777, 1, 99, 3)
    answer = (await client.get(TOP)).json

    assert [(place["rank"], place["id"]) for place in answer["items"]] == [(1, "10"), (2, "777"), (3, "1"), (4, "99")]
    assert [place["item"] and place["item"]["title"] for place in answer["items"]] == [
        "We hire", None, "One file and a loop", None,
    ]  # fmt: skip
    assert (answer["total"], answer["missing"], answer["next_cursor"]) == (4, 2, None)
    assert answer["updated_at"].endswith("Z")


async def test_a_new_order_replaces_the_old_one_at_once_and_the_same_one_changes_nothing(world: World, client: Client):
    rank(world, "top", 10, 1)
    before = await client.get(TOP)
    version = world.store.shelf.version("hacker_news")
    rank(world, "top", 10, 1)
    assert world.store.shelf.version("hacker_news") == version
    rank(world, "top", 1)
    client = Client(build(world.backend()))
    after = await client.get(TOP)

    assert [place["id"] for place in before.json["items"]] == ["10", "1"]
    assert [place["id"] for place in after.json["items"]] == ["1"]
    assert before.headers["etag"] != after.headers["etag"]


async def test_a_list_is_read_page_by_page_and_refuses_a_foreign_cursor(world: World, client: Client):
    rank(world, "top", 10, 1, 3)
    first = (await client.get(TOP, limit=2)).json
    second = (await client.get(TOP, limit=2, cursor=first["next_cursor"])).json

    assert [place["rank"] for place in second["items"]] == [3]
    assert second["next_cursor"] is None
    assert (await client.get(TOP, cursor="soup")).status == 400
    assert (await client.get(TOP, cursor="Wy0xXQ")).status == 400
    assert (await client.get(TOP, limit=0)).status == 400


async def test_a_list_nobody_has_reported_is_empty_and_an_unknown_one_is_not_found(client: Client):
    answer = (await client.get("/api/v1/hacker_news/lists/new")).json
    assert (answer["items"], answer["total"], answer["updated_at"]) == ([], 0, None)
    assert (await client.get("/api/v1/hacker_news/lists/banana")).status == 404
    assert (await client.get("/api/v1/bitcoin_news/lists/top")).status == 404
    assert "tidings discover hacker_news" in (await client.get("/pipelines/hacker_news/lists/new", BROWSER)).text


@pytest.mark.parametrize("form", ["rss", "atom"])
async def test_a_feed_of_a_list_has_its_order_and_leaves_out_what_is_gone(world: World, client: Client, form: str):
    world.add_story(Story(id=50, type="story", title="Flagged away", dead=True))
    rank(world, "top", 10, 50, 777, 1)
    feed = feedparser.parse((await client.get(f"/feeds/hacker_news/lists/top.{form}")).body)
    search = feedparser.parse((await client.get("/feeds/hacker_news.atom")).body)

    assert not feed.bozo
    assert feed.feed.title == "Hacker News: Front page"
    assert [entry.title for entry in feed.entries] == ["We hire", "One file and a loop"]
    assert {entry.id for entry in feed.entries} <= {entry.id for entry in search.entries}


async def test_the_json_feed_of_a_list_has_the_same_entries(world: World, client: Client):
    rank(world, "top", 10, 1)
    feed = (await client.get("/feeds/hacker_news/lists/top.json")).json
    assert [item["title"] for item in feed["items"]] == ["We hire", "One file and a loop"]


async def test_a_page_shows_ranks_gaps_and_the_other_lists(world: World, client: Client):
    rank(world, "top", 10, 777, 1)
    page = (await client.get("/pipelines/hacker_news/lists/top", BROWSER)).text

    assert '<span class="rank num">3.</span> <a href="https://blog.example/loop"' in page
    assert "777</span> is not here" in page
    assert '/pipelines/hacker_news/lists/new"' in page
    entrance = await client.get("/pipelines/hacker_news", BROWSER)
    assert entrance.headers["location"] == "/pipelines/hacker_news/lists/top"


async def test_the_document_describes_lists(client: Client):
    paths = (await client.get("/openapi.json")).json["paths"]
    described = paths["/api/v1/hacker_news/lists/{list}"]["get"]
    assert described["parameters"][0]["schema"]["enum"] == ["top", "new"]
    place = described["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["items"]["items"]
    assert place["required"] == ["rank", "id", "item"]
    assert "/feeds/hacker_news/lists/{list}.atom" in paths


def test_only_declared_lists_are_kept_and_need_a_collection(world: World):
    with pytest.raises(BadInput, match="declares no list 'banana'"):
        rank(world, "banana", 1)
    with pytest.raises(Misconfigured, match="no collection 'soups'"):
        replace(threaded_pipeline(), lists=(RankedList("top", "Top", "soups"),))
