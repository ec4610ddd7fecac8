"""Sources are added, changed and removed while everything runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.support.engine import Engine
from tests.support.waiting import until
from tests.unit.pipelines.feeds.sites import NOW_MS, a_site

from tidings.model.errors import BadInput
from tidings.pipelines import feeds
from tidings.sample.feeds import FeedSites
from tidings.sample.serving import StandIn

ONE, TWO = "/one.example/feed", "/two.example/feed"


@asynccontextmanager
async def sites() -> AsyncIterator[StandIn]:
    world = FeedSites([a_site("one.example", 2), a_site("two.example", 3)], now_ms=lambda: NOW_MS)
    async with StandIn(world.app) as web:
        yield web


def watching(database_url: str, web: StandIn, listed: Sequence[Any] = ()) -> Engine:
    pipeline = feeds.build(feeds.Settings(feeds=list(listed)))
    return Engine(database_url, [pipeline], loopback=[("127.0.0.1", web.port)])


async def found(engine: Engine) -> int:
    await engine.discover()
    await engine.work_until_idle()
    return len(engine.items("entry"))


async def test_another_process_asks_an_added_source_within_seconds(database_url: str) -> None:
    async with sites() as web, watching(database_url, web) as adder, watching(database_url, web) as asker:
        stop = asyncio.Event()
        running = asyncio.create_task(asker.app.poller.run(stop))
        name = adder.store.source_edits.add("feeds", {"address": web.url + ONE})
        await until(lambda: bool([r for r in adder.store.schedules.runs(name) if r.new == 2]), seconds=10)
        stop.set()
        await running


async def test_a_removed_source_is_asked_no_more_and_its_items_stay(database_url: str) -> None:
    async with sites() as web, watching(database_url, web) as engine:
        edits = engine.store.source_edits
        name = edits.add("feeds", {"address": web.url + ONE, "title": "One"})
        assert await found(engine) == 2
        assert edits.remove(name, items="keep") == 2
        assert name not in engine.store.source_list.current()
        assert await found(engine) == 2
        # Added again it has its old name, so that nothing is doubled.
        assert edits.add("feeds", {"address": web.url + ONE}) == name
        assert await found(engine) == 2


async def test_a_forgotten_source_takes_its_items_along_and_may_come_back(database_url: str) -> None:
    async with sites() as web, watching(database_url, web) as engine:
        edits = engine.store.source_edits
        name, other = (edits.add("feeds", {"address": web.url + path}) for path in (ONE, TWO))
        assert await found(engine) == 5
        assert edits.remove(name, items="forget") == 2
        assert {item.key.partition("/")[0] for item in engine.items("entry")} == {other.removeprefix("feeds.")}
        assert len(engine.cards("entries")) == 3
        assert edits.add("feeds", {"address": web.url + ONE}) == name
        assert await found(engine) == 5


async def test_a_changed_source_keeps_its_items(database_url: str) -> None:
    async with sites() as web, watching(database_url, web) as engine:
        edits = engine.store.source_edits
        name = edits.add("feeds", {"address": web.url + "/one.example/"})
        assert await found(engine) == 2
        edits.edit(name, {"address": web.url + ONE, "title": "The log", "interval": "30min"})
        (placed,) = engine.store.source_list.current().values()
        assert (placed.source.name, placed.source.schedule.every_seconds) == (name, 1800)
        assert await found(engine) == 2
        edits.edit(name, {"interval": None})
        (placed,) = engine.store.source_list.current().values()
        assert placed.source.schedule.every_seconds == 3600


async def test_sources_of_the_file_are_changed_in_the_file(database_url: str) -> None:
    async with sites() as web, watching(database_url, web, [web.url + ONE]) as engine:
        edits = engine.store.source_edits
        (name,) = engine.store.source_list.current()
        for act in (lambda: edits.edit(name, {"title": "x"}), lambda: edits.remove(name, items="keep")):
            with pytest.raises(BadInput, match="stands in the configuration file"):
                act()
        with pytest.raises(BadInput, match=r"watched already, as .* in the configuration file"):
            edits.add("feeds", {"address": web.url + ONE + "#top"})


@pytest.mark.parametrize(
    ("said", "mistake"),
    [
        ({"address": "nonsense"}, "address: write an absolute"),
        ({"address": "https://a.example/", "kind": "newspaper"}, "no sources of the kind 'newspaper'"),
        ({"address": "https://a.example/", "interval": "1s"}, "interval: 1 s is too often"),
        ({"address": "https://a.example/", "titel": "x"}, "titel: a source has no such field"),
        ({"address": "https://a.example/", "title": 5}, "title: "),
        ({"address": "https://a.example/", "options": {"x": 1}}, "options.x: "),
        ({"title": "x"}, "address"),
        ({"address": "https://a.example/", "exclude": "score:>"}, "exclude: "),
        ({"address": "https://a.example/", "cron": "61 * * * *"}, "cron: "),
        ({"address": "https://a.example/", "cron": "0 7 * * *", "interval": 3600}, "either an interval or a cron"),
        ({"address": "https://a.example/", "priority": 7}, "priority: "),
    ],
)
async def test_what_cannot_be_watched_is_refused_by_its_field(
    database_url: str, said: dict[str, Any], mistake: str
) -> None:
    async with Engine(database_url, [feeds.build(feeds.Settings())]) as engine:
        with pytest.raises(BadInput, match=mistake):
            engine.store.source_edits.add("feeds", said)
        assert engine.store.source_list.current() == {}


async def test_what_is_not_wanted_is_kept_out_counted_and_explained(database_url: str) -> None:
    async with sites() as web, watching(database_url, web) as engine:
        edits = engine.store.source_edits
        said = {"address": web.url + TWO, "include": "entry", "exclude": 'title:"number 2"', "cron": "0 7 * * *"}
        name = edits.add("feeds", said)
        (run,) = await engine.discover()
        await engine.work_until_idle()
        assert sorted(card["title"] for card in engine.cards("entries")) == ["Entry number 1", "Entry number 3"]
        assert (run.new, run.rejected, run.note) == (2, 1, "1 kept out by include or exclude")
        placed = engine.store.source_list.current()[name]
        assert placed.source.schedule.cron == "0 7 * * *"
