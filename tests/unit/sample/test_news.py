from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path

import pytest
from tests.support.clock import ManualClock

from tidings.discover.feed import find_feeds, parse_feed
from tidings.net.client import Web
from tidings.sample.news import APITUBE, NEWSDATA, News
from tidings.sample.serving import StandIn

NOW = 1_789_000_000_000


@asynccontextmanager
async def visiting(world: News) -> AsyncIterator[tuple[Web, str]]:
    async with StandIn(world.app) as server, Web(user_agent="tidings-test/1", endpoints=[server.url]) as web:
        yield web, server.url


@pytest.fixture
def world() -> News:
    return News.from_package(NOW, now_ms=ManualClock(NOW).now_ms)


async def test_every_page_of_the_shipped_world_shows_its_article():
    world = News.from_package(NOW, now_ms=ManualClock(NOW + 3_600_000).now_ms)
    async with visiting(world) as (web, url):
        for story in world.stories.values():
            if story.fault is None:
                page = await web.call("GET", world.link(story, url))
                assert page.status == 200
                assert escape(story.paragraphs[0]) in page.body.decode()


def test_what_arrives_later_is_not_listed_before_its_time():
    clock = ManualClock(NOW)
    world = News.from_package(NOW, now_ms=clock.now_ms)
    late = [s for s in world.stories.values() if s.published_ms > NOW]
    assert all(s not in world.listed(p) for s in late for p in s.providers)
    clock.advance(seconds=3600)
    assert all(s in world.listed(p) for s in late for p in s.providers)


@pytest.mark.parametrize(
    ("recorded", "path", "header"),
    [
        ("synthetic_newsdata_crypto_page1.json", f"{NEWSDATA}/crypto", "X-ACCESS-KEY"),
        ("synthetic_apitube_everything_page1.json", f"{APITUBE}/news/everything?title=bitcoin", "X-API-Key"),
    ],
)
async def test_answers_have_the_fields_of_recorded_ones(
    world: News, samples: Path, recorded: str, path: str, header: str
):
    world.newsdata.key = world.apitube.key = "key"
    async with visiting(world) as (web, url):
        answer = json.loads((await web.call("GET", url + path, headers={header: "key"})).body)
    expected = json.loads((samples / "news" / recorded).read_text())
    assert set(answer) == set(expected)
    assert set(answer["results"][0]) == set(expected["results"][0])


async def test_outlets_announce_a_feed_that_can_be_read(world: News):
    async with visiting(world) as (web, url):
        for outlet in world.outlets.values():
            front = await web.call("GET", f"{url}/{outlet.host}/")
            (address,) = find_feeds(front.body, f"{url}/")
            answer = await web.call("GET", address)
            feed = parse_feed(answer.body, answer.headers["content-type"], address)
            assert feed.flaw is None
            assert len(feed.entries) == len(world.listed("rss", outlet.id))
            again = await web.call("GET", address, headers={"if-none-match": answer.headers["etag"]})
            assert again.status == 304
