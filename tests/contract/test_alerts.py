"""Alerts fire once per episode, clear with hysteresis, survive a restart, and reach people past every queue."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.engine import Engine
from tests.support.example import ThingSource, pipeline, thing
from tests.support.store import Ground

from tidings.app import App
from tidings.model.contracts import Receipt
from tidings.model.errors import Transient
from tidings.model.pipeline import Page
from tidings.model.publication import Notice
from tidings.watch.alerts import AlertLoop
from tidings.watch.rules import Thresholds


class Told:
    """A notifier that remembers what it was told, or fails as long as it should."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.fails = False

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        if self.fails:
            raise Transient("the channel does not answer")
        self.notices.append(notice)
        return Receipt(delivery_id, "told")

    def render(self, notice: Notice, delivery_id: str) -> Any:
        return {"title": notice.title, "id": delivery_id}


def loop_of(app: App, told: Told) -> AlertLoop:
    return AlertLoop(
        executor=app.executor,
        status=app.store.status_views.status,
        channels=app.store.status_views.channels,
        facts=app.health.facts,
        store=app.store.alerts,
        now_ms=app.store.now_ms,
        thresholds=Thresholds(dead_letters=5, disk_used_share=2.0),
        notifiers=[told],
    )


async def buried(engine: Engine, source: ThingSource, count: int) -> None:
    source.all_pages = [Page(tuple(thing(f"k{n}", fate="die") for n in range(count)))]
    await engine.discover()
    await engine.work_until_idle()


async def test_an_episode_fires_once_and_survives_a_restart(database_url: str) -> None:
    source, told = ThingSource(), Told()
    async with Engine(database_url, [pipeline(source)]) as engine:
        await buried(engine, source, 6)
        for _ in range(3):
            await loop_of(engine.app, told).check()
        await engine.reopen()
        await loop_of(engine.app, told).check()

        assert [(a.name, a.subject) for a in engine.store.status_views.alerts()] == [("dead letters", "example")]
        assert [notice.title for notice in told.notices] == ["Alert: dead letters"]
        assert len(engine.store.status_views.alerts(all_of_them=True)) == 1


def test_of_many_processes_one_tells_of_an_episode(open_ground: Callable[..., Ground]) -> None:
    processes = [open_ground() for _ in range(3)]
    number = processes[0].store.alerts.fire("dead letters", "example", "too many", "look", 6, 5)

    with ThreadPoolExecutor(3) as pool:
        takes = list(pool.map(lambda process: process.store.alerts.take_telling(number), processes))

    assert sorted(takes) == [False, False, True]


async def test_it_clears_only_at_80_percent_and_may_fire_again(database_url: str) -> None:
    source, told = ThingSource(), Told()
    async with Engine(database_url, [pipeline(source)]) as engine:
        await buried(engine, source, 6)
        alerts = loop_of(engine.app, told)
        await alerts.check()

        engine.store.retention.purge(item=engine.items("thing")[0].id)
        await alerts.check()
        assert len(engine.store.status_views.alerts()) == 1, "5 of 5 is no longer above, but not yet clear"

        engine.store.retention.purge(item=engine.items("thing")[0].id)
        await alerts.check()
        assert engine.store.status_views.alerts() == []

        source.all_pages = [Page(tuple(thing(f"again{n}", fate="die") for n in range(4)))]
        await engine.discover()
        await engine.work_until_idle()
        await alerts.check()
        assert len(engine.store.status_views.alerts(all_of_them=True)) == 2
        assert len(told.notices) == 2


async def test_an_alert_that_could_not_be_told_is_told_later(database_url: str) -> None:
    source, told = ThingSource(), Told()
    async with Engine(database_url, [pipeline(source)]) as engine:
        await buried(engine, source, 6)
        alerts = loop_of(engine.app, told)
        told.fails = True
        await alerts.check()
        assert told.notices == []

        told.fails = False
        await alerts.check()
        assert len(told.notices) == 1


async def test_history_is_kept_by_the_minute(database_url: str) -> None:
    source, told = ThingSource(), Told()
    async with Engine(database_url, [pipeline(source)]) as engine:
        await buried(engine, source, 2)
        alerts = loop_of(engine.app, told)
        await alerts.check()
        engine.advance_clock(seconds=60)
        await alerts.check()

        points = engine.store.status_views.points("dead:example", since_ms=0)
        assert [point.value for point in points] == [2.0, 2.0]
        assert points[1].at - points[0].at == 60_000
        assert sum(p.value for p in engine.store.status_views.points("settled:example", since_ms=0)) == 2
