"""The stand-in websites serve feeds that any reader understands."""

from __future__ import annotations

import pytest
from tests.support.clock import ManualClock

from tidings.discover.feed import find_feeds, parse_feed
from tidings.net.client import Web
from tidings.sample.feeds import TYPES, FeedSites
from tidings.sample.serving import StandIn


@pytest.mark.parametrize("form", sorted(TYPES))
async def test_the_feeds_that_ship_are_served_in_every_format(form: str) -> None:
    clock = ManualClock()
    world = FeedSites.from_package(clock.now_ms)
    for site in world.feeds.values():
        site.format = form
    async with StandIn(world.app) as server:
        web = Web(user_agent="t/1", per_host_delay_seconds=0, loopback_allowed=frozenset({("127.0.0.1", server.port)}))
        async with web:
            for site in world.feeds.values():
                home = await web.page(f"{server.url}/{site.host}{site.home_path}", robots=False)
                (address,) = find_feeds(home.body, home.url)
                answer = await web.page(address, robots=False)
                feed = parse_feed(answer.body, answer.headers["content-type"], answer.url)
                before = len(feed.entries)
                assert feed.title == site.title
                assert all(entry.url and entry.published_ms and entry.summary_text for entry in feed.entries)
                page = await web.page(str(feed.entries[0].url), robots=False)
                assert feed.entries[0].title in page.body.decode()
                clock.advance(seconds=600)
                answer = await web.page(address, robots=False)
                assert len(parse_feed(answer.body, None, address).entries) >= before
                clock.advance(seconds=-600)
