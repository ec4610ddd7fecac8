"""Hacker News by its streams: new and changed items within seconds, whatever happens to the streams.

Over real HTTP, against a stand-in that misbehaves by a plan, on both databases. Runs by the schedule are an hour apart
unless a test says otherwise, so that whatever comes in comes by the streams.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bench.hn_live import measure
from tests.support.engine import Engine
from tests.support.firebase import FirebaseApi, StreamFault, Trouble
from tests.support.hacker_news import engine_on
from tests.support.waiting import until

from tidings.sample.serving import StandIn


@pytest.fixture
def api() -> FirebaseApi:
    return FirebaseApi(seed=9)


@asynccontextmanager
async def running(database_url: str, api: FirebaseApi, **settings: Any) -> AsyncIterator[Engine]:
    """Run poller and worker as `tidings run` does."""
    async with engine_on(database_url, api, **{"every": 3600, **settings}) as engine:
        stop = asyncio.Event()
        loops = [asyncio.create_task(loop.run(stop)) for loop in (engine.app.poller, engine.app.worker())]
        try:
            await until(lambda: len(engine.cards("items")) == len(api.items))
            yield engine
        finally:
            stop.set()
            await asyncio.gather(*loops)


def is_shown(engine: Engine, number: int) -> bool:
    return engine.card("items", str(number)) is not None


def score(engine: Engine, number: int) -> int | None:
    card = engine.card("items", str(number))
    return None if card is None else card["score"]


async def test_what_is_new_or_changed_is_there_within_seconds(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 31))
    async with running(database_url, api) as engine:
        await until(lambda: api.streams == 2)
        waits, rng = [], random.Random(5)
        for number in range(31, 51):
            started = time.monotonic()
            api.add(number)
            api.change(number, score=1)
            await until(partial(is_shown, engine, number))
            waits.append(time.monotonic() - started)
            await asyncio.sleep(rng.uniform(0, 0.1))
        engine.advance_clock(seconds=60)
        api.change(7, score=99)
        api.items[8] = {"id": 8, "type": "story", "time": 1_700_000_008, "deleted": True}
        api.change(8)
        await until(lambda: score(engine, 7) == 99 and (engine.card("items", "8") or {}).get("deleted"))

        assert sorted(waits)[10] < 2
        assert max(waits) < 10
        assert sum(api.requests_for(number) for number in range(31, 51)) <= 1.3 * 20
        assert api.most_at_once <= 16
        (record,) = engine.store.schedules.runs("hacker_news.firebase")
        assert record.new == 50


async def test_a_flood_is_followed(database_url: str, api: FirebaseApi) -> None:
    """Some 2,000 a minute."""
    api.add(*range(1, 31))
    async with running(database_url, api) as engine:
        await until(lambda: api.streams == 2)
        for number in range(31, 131):
            api.add(number)
            await asyncio.sleep(0.03)
        added = time.monotonic()
        await until(lambda: len(engine.cards("items")) == 130)

        assert time.monotonic() - added < 5
        assert sum(api.requests_for(number) for number in range(31, 131)) <= 1.3 * 100
        assert api.most_at_once <= 16


@pytest.mark.parametrize("fault", ["500", "moved", "cut", "silent", "torn", "cancel", "auth_revoked", "answer"])
async def test_a_stream_that_goes_wrong_is_opened_again(
    database_url: str, api: FirebaseApi, fault: StreamFault
) -> None:
    api.add(*range(1, 6))
    api.stream_faults = [fault] * 2
    async with StandIn(api.app) as other, running(database_url, api) as engine:
        api.moved_to = other.url
        await until(lambda: not api.stream_faults)
        engine.advance_clock(seconds=60)
        api.add(6)
        api.change(3, score=50)
        await until(lambda: score(engine, 6) == 1 and score(engine, 3) == 50)

        assert api.requests["stream maxitem"] + api.requests["stream updates"] >= 4


@pytest.mark.parametrize("fault", ["patch", "parts"])
async def test_a_window_that_is_told_in_parts_is_understood(
    database_url: str, api: FirebaseApi, fault: StreamFault
) -> None:
    api.add(*range(1, 6))
    api.change(4)
    api.stream_faults = [fault] * 2
    async with running(database_url, api) as engine:
        await until(lambda: api.streams == 2)
        engine.advance_clock(seconds=60)
        api.change(2, score=20)
        api.change(3, score=30)
        await until(lambda: score(engine, 3) == 30)


async def test_an_id_that_has_no_item_yet_is_asked_for_again_within_seconds(
    database_url: str, api: FirebaseApi
) -> None:
    api.add(*range(1, 6))
    async with running(database_url, api) as engine:
        await until(lambda: api.streams == 2)
        api.plan[6] = Trouble("null", requests=2)
        api.add(6)
        await until(lambda: score(engine, 6) == 1)

        assert api.requests_for(6) == 3


async def test_a_bad_id_does_not_hold_up_the_stream(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 6))
    api.plan = {6: Trouble("500"), 7: Trouble("torn"), 8: Trouble("401")}
    async with running(database_url, api) as engine:
        await until(lambda: api.streams == 2)
        for number in range(6, 11):
            api.add(number)
            await asyncio.sleep(0.3)
        await until(lambda: score(engine, 9) == 1 and score(engine, 10) == 1)


async def test_without_streams_the_schedule_goes_on(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 6))
    api.stream_faults = ["500"] * 1_000
    async with running(database_url, api, every=1) as engine:
        api.add(6)
        await until(lambda: score(engine, 6) == 1)


async def test_a_paused_source_is_not_asked_because_of_a_signal(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 6))
    async with running(database_url, api) as engine:
        await until(lambda: api.streams == 2)
        engine.store.switches.pause("source:hacker_news.firebase", reason="for the test")
        api.add(6)
        await asyncio.sleep(1.5)
        assert api.requests_for(6) == 0
        engine.store.switches.resume("source:hacker_news.firebase")
        await until(lambda: score(engine, 6) == 1)


@pytest.mark.slow
@pytest.mark.parametrize(("a_minute", "count"), [(60, 6), (2_000, 200)])
async def test_a_real_process_asks_little_and_finds_everything(
    database_url: str, tmp_path: Path, a_minute: int, count: int
) -> None:
    """What is measured here in small is printed at full size by `make bench`; times depend on the machine."""
    figures = await measure(tmp_path, database_url, a_minute, count)

    print(f"{a_minute} a minute: p50 {figures.wait(0.5):.2f} s, p99 {figures.wait(0.99):.2f} s, {figures}"[:200])
    assert len(figures.waits) == count
    assert figures.requests_first <= 1.3
    assert figures.most_at_once <= 16
