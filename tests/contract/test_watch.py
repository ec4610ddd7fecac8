"""Whatever roles the processes have, one of them watches, and each alert is told once."""

from __future__ import annotations

from contextlib import AsyncExitStack

import msgspec
from tests.contract.test_alerts import Told
from tests.support import example
from tests.support.engine import Engine
from tests.support.example import ThingSource, pipeline, thing
from tests.support.own_sql import own_sql

from tidings.model.pipeline import Page
from tidings.model.publication import IdIndex, Retention
from tidings.watch.alerts import WATCH_SECONDS, AlertLoop
from tidings.watch.rules import Thresholds

QUIET = Thresholds(disk_used_share=2.0)


def watching(engine: Engine, role: str, told: Told | None = None, limits: Thresholds = QUIET) -> AlertLoop:
    app = engine.app
    return AlertLoop(
        executor=app.executor,
        status=app.store.status_views.status,
        channels=app.store.status_views.channels,
        facts=app.health.facts,
        store=app.store.alerts,
        now_ms=app.store.now_ms,
        thresholds=limits,
        notifiers=[told] if told else [],
        metrics=app.metrics,
        processes=app.store.process_notes,
        owner=app.owner,
        role=role,
    )


def firing(engine: Engine) -> set[str]:
    return {alert.name for alert in engine.store.status_views.alerts()}


async def test_without_a_worker_the_others_say_so_once(database_url: str) -> None:
    source, told = ThingSource(all_pages=[Page(tuple(thing(str(n)) for n in range(3)))]), Told()
    async with AsyncExitStack() as opened:
        server, poller = [await opened.enter_async_context(Engine(database_url, [pipeline(source)])) for _ in range(2)]
        loops = [watching(server, "serve", told), watching(poller, "discover", told)]
        await poller.discover()
        for _ in range(13):
            for loop in loops:
                await loop.beat()
            for each in (server, poller):
                each.advance_clock(seconds=10)
        assert firing(server) == {"no worker"}, "the poller was seen"
        assert [notice.title for notice in told.notices] == ["Alert: no worker"]
        assert "3 findings and items wait" in told.notices[0].text

        server.store.process_notes.put("a worker", "work")
        await loops[0].beat()
        assert firing(server) == set()


async def test_when_the_watching_process_is_gone_another_takes_over(database_url: str) -> None:
    source = ThingSource()
    async with AsyncExitStack() as opened:
        worker, server = [await opened.enter_async_context(Engine(database_url, [pipeline(source)])) for _ in range(2)]
        limits = Thresholds(dead_letters=2, disk_used_share=2.0)
        last = watching(server, "serve", limits=limits)
        await watching(worker, "all", limits=limits).beat()
        source.all_pages = [Page(tuple(thing(f"k{n}", fate="die") for n in range(3)))]
        await worker.discover()
        await worker.work_until_idle()
        await last.beat()
        assert firing(server) == set(), "another process has the watch"

        server.advance_clock(seconds=WATCH_SECONDS + 1)
        await last.beat()
        assert firing(server) == {"dead letters"}


async def test_an_absence_is_told_once_though_its_watching_process_dies(database_url: str) -> None:
    told = Told()
    async with AsyncExitStack() as opened:
        first, last = [await opened.enter_async_context(Engine(database_url, [pipeline()])) for _ in range(2)]
        watch, heir = watching(first, "serve", told), watching(last, "serve", told)
        for _ in range(13):
            for loop in (watch, heir):
                await loop.beat()
            for each in (first, last):
                each.advance_clock(seconds=10)
        assert firing(first) == {"no worker"}

        for _ in range(20):
            last.advance_clock(seconds=10)
            await heir.beat()
            assert firing(last) == {"no worker"}, "who has just begun to watch knows no better"
        assert [notice.title for notice in told.notices] == ["Alert: no worker"]

        last.store.process_notes.put("a worker", "work")
        await heir.beat()
        assert firing(last) == set()


async def test_a_difference_is_told_once_though_its_watching_process_dies(database_url: str) -> None:
    source, told = ThingSource(all_pages=[Page((thing("lost"),))]), Told()
    declared = pipeline(
        source,
        first_cards={"thing": lambda key, body: msgspec.structs.replace(example.present(key, body), sort=2**45)},
        id_index=IdIndex("things", newest=5, days=30),
    )
    async with AsyncExitStack() as opened:
        first, last = [await opened.enter_async_context(Engine(database_url, [declared])) for _ in range(2)]
        await first.discover()
        await first.work_until_idle()
        with first.app.database.transaction() as tx:
            own_sql(tx, "DELETE FROM shelf WHERE key = 'thing:lost'", {})
        watch, heir = watching(first, "all", told), watching(last, "all", told)
        for minute in range(10):
            await (watch if minute < 5 else heir).beat()
            assert firing(last) == ({"index divergence"} if minute >= 3 else set())
            for each in (first, last):
                each.advance_clock(seconds=60)
        assert [notice.title for notice in told.notices] == ["Alert: index divergence"]


async def test_requests_to_any_server_count(database_url: str) -> None:
    async with AsyncExitStack() as opened:
        worker, server = [await opened.enter_async_context(Engine(database_url, [pipeline()])) for _ in range(2)]
        watch = watching(worker, "all")
        await watch.beat()
        for number in range(100):
            server.app.metrics.observe_request("/api/v1/status", 503 if number < 2 else 200, 0.01)
        await watching(server, "serve").beat()
        await watch.beat()

        assert firing(worker) == {"api errors"}


async def test_an_index_at_its_cap_does_not_diverge(database_url: str) -> None:
    source = ThingSource()
    declared = pipeline(
        source,
        first_cards={"thing": lambda key, body: msgspec.structs.replace(example.present(key, body), sort=2**45)},
        id_index=IdIndex("things", newest=5, days=30),
        retention=(Retention("thing", by_id_index=True),),
    )
    async with Engine(database_url, [declared]) as engine:
        watch = watching(engine, "all")
        for minute in range(8):
            source.all_pages = [Page(tuple(thing(f"{minute}-{n}") for n in range(3)))]
            await engine.discover()
            await engine.work_until_idle()
            await watch.beat()
            assert firing(engine) == set()
            engine.advance_clock(seconds=60)
            await engine.tidy()

        with engine.app.database.transaction() as tx:
            own_sql(tx, "DELETE FROM shelf WHERE key IN ('thing:7-0', 'thing:7-1')", {})
        await watch.beat()
        assert firing(engine) == set(), "it may be between two steps"
        for _ in range(4):
            engine.advance_clock(seconds=60)
            await watch.beat()
        (alert,) = engine.store.status_views.alerts()
        assert (alert.name, alert.value) == ("index divergence", 2)
        assert "thing:7-0, thing:7-1" in alert.message
