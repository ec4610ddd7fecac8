"""A source is told apart by its address: reordering, renaming and moving keep its items."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.support.engine import Engine
from tests.unit.pipelines.feeds.sites import NOW_MS, a_site

from tidings.pipelines import bitcoin_news, feeds
from tidings.sample.feeds import FeedSites
from tidings.sample.serving import StandIn

ONE, TWO = "/one.example/feed", "/two.example/feed"


@asynccontextmanager
async def host_of_two() -> AsyncIterator[StandIn]:
    """Serve two feeds on one host: the first has two entries, the second three."""
    world = FeedSites([a_site("one.example", 2), a_site("two.example", 3)], now_ms=lambda: NOW_MS)
    async with StandIn(world.app) as web:
        yield web


def watching(database_url: str, web: StandIn, listed: Sequence[Any]) -> Engine:
    """An engine whose file lists these feeds."""
    pipeline = feeds.build(feeds.Settings(feeds=list(listed)))
    return Engine(database_url, [pipeline], loopback=[("127.0.0.1", web.port)])


async def found(engine: Engine) -> int:
    """Ask every feed and process what it brings; return how many items there are then."""
    await engine.discover()
    await engine.work_until_idle()
    return len(engine.items("entry"))


async def test_swapping_two_unnamed_feeds_of_one_host_doubles_nothing(database_url: str) -> None:
    async with host_of_two() as web:
        async with watching(database_url, web, [web.url + ONE, web.url + TWO]) as engine:
            assert await found(engine) == 5
        async with watching(database_url, web, [web.url + TWO, web.url + ONE]) as engine:
            assert await found(engine) == 5
        async with watching(database_url, web, [web.url + TWO]) as engine:
            assert await found(engine) == 5


async def test_a_feed_that_gets_a_title_keeps_its_items(database_url: str) -> None:
    async with host_of_two() as web:
        async with watching(database_url, web, [web.url + ONE]) as engine:
            assert await found(engine) == 2
        async with watching(database_url, web, [{"url": web.url + ONE, "name": "The log"}]) as engine:
            assert await found(engine) == 2


async def test_a_feed_whose_new_address_is_written_down_keeps_its_items(database_url: str) -> None:
    async with host_of_two() as web:
        async with watching(database_url, web, [web.url + "/one.example/"]) as engine:
            assert await found(engine) == 2
        # The site announced this address; now the file names it directly.
        async with watching(database_url, web, [web.url + TWO, web.url + ONE]) as engine:
            assert await found(engine) == 5


@pytest.mark.parametrize("is_swapped", [False, True])
async def test_names_that_an_earlier_release_gave_are_kept(database_url: str, is_swapped: bool) -> None:
    async with host_of_two() as web:
        listed = [web.url + ONE, web.url + TWO]
        async with watching(database_url, web, listed) as engine:
            await found(engine)
            before = sorted(engine.app.store.source_list.current())
            with engine.app.database.transaction() as tx:
                tx.run_script("DELETE FROM sources;")
        async with watching(database_url, web, listed[::-1] if is_swapped else listed) as engine:
            assert await found(engine) == 5
            assert sorted(engine.app.store.source_list.current()) == before


async def test_outlets_of_one_host_keep_their_names_in_any_order(database_url: str) -> None:
    urls = ("https://a.example/x?y", "https://a.example/x-y")

    async def names(feeds: Sequence[str]) -> dict[str, str]:
        pipeline = bitcoin_news.build(bitcoin_news.Settings(feeds=tuple(feeds)))
        async with Engine(database_url, [pipeline]) as engine:
            placed = engine.app.store.source_list.current()
            return {each.source.url: name for name, each in placed.items()}  # type: ignore[attr-defined]

    assert await names(urls) == await names(urls[::-1])
