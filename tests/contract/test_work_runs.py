"""Runs of the processor: one record and one line each. Shares: what one pipeline may have of a lane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from tests.contract.test_worker import Gate, job, record, waiting_pipeline
from tests.support import example
from tests.support.engine import Engine
from tests.support.example import ThingSource, thing
from tests.support.logs import listening
from tests.support.waiting import until

from tidings.model.pipeline import Page
from tidings.model.work_run import WorkRun
from tidings.process.shares import Share


@asynccontextmanager
async def working(*engines: Engine) -> AsyncIterator[None]:
    stop = asyncio.Event()
    running = [asyncio.create_task(engine.app.worker().run(stop)) for engine in engines]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*running)


async def test_a_run_of_the_processor_leaves_a_record_and_one_line(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline(fuse=False)]) as engine:
        record(engine, thing("a"), thing("b"), thing("c", fate="reject"), thing("d", fate="fail"))
        with listening(logging.INFO) as lines:
            await engine.work_until_idle()

        run = engine.store.status_views.status().pipelines["example"].last_work
        assert run is not None
        # a and b take three steps, c and d two; d is tried again later.
        assert (run.loaded, run.processed, run.removed, run.moved_to_end, run.queue_length) == (10, 10, 3, 1, 1)
        assert run.process == engine.app.owner
        assert engine.now_ms() - 60_000 < run.started_at <= run.ended_at <= engine.now_ms()
        (line,) = [line for line in lines.told if line.startswith("worked")]
        assert "'loaded': 10, 'processed': 10, 'removed': 3, 'moved_to_end': 1, 'queue_length': 1" in line
        assert not [line for line in lines.told if line.startswith(("loaded", "settled"))]


async def test_findings_run_before_their_birth_count_as_loaded(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline()]) as engine:
        record(engine, *(thing(str(n)) for n in range(7)))
        await engine.work_until_idle()

        (run,) = engine.store.work_runs.last("example", 10)
        assert (run.loaded, run.processed, run.removed, run.queue_length) == (7, 7, 7, 0)


async def test_a_worker_that_goes_on_tells_of_a_run_when_nothing_is_left(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline()]) as engine, working(engine):
        record(engine, thing("a"))
        await until(lambda: len(engine.store.work_runs.last("example", 10)) == 1)
        record(engine, thing("b"))
        await until(lambda: len(engine.store.work_runs.last("example", 10)) == 2)

        assert [run.loaded for run in engine.store.work_runs.last("example", 10)] == [1, 1]


def test_a_run_is_over_when_idle_or_after_a_minute() -> None:
    run = WorkRun("example", started=100.0)
    run.load(2, now=100.0)
    assert not run.is_over(110.0)  # under way
    run.settle("advanced", "done", 2, now=111.0)
    assert not run.is_over(112.0)
    assert run.is_over(113.0)
    run.load(1, now=113.0)
    assert not run.is_over(159.0)
    assert run.is_over(160.0)


async def test_old_records_are_dropped(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline()]) as engine:
        record(engine, thing("a"))
        await engine.work_until_idle()
        engine.advance_clock(seconds=3 * 86_400)
        await engine.tidy()

        assert engine.store.work_runs.last("example") == []


async def test_a_run_of_the_updater_tells_what_it_did_to_the_log(database_url: str) -> None:
    source = ThingSource(all_pages=[Page((thing("a"), thing("b")), credits=1)])
    async with Engine(database_url, [example.pipeline(source)], intake_days=0) as engine:
        await engine.discover()
        await engine.work_until_idle()
        source.all_pages = [Page((thing("a"), thing("b", "changed"), thing("c")), credits=1)]
        with listening(logging.INFO) as lines:
            await engine.discover()

        (view,) = engine.store.status_views.sources()
        run = view.last_run
        assert run is not None
        assert (run.found, run.trimmed, run.added, run.in_log, run.credits) == (3, 2, 2, 2, 1)
        (line,) = [line for line in lines.told if line.startswith("discovered")]
        assert "'trimmed': 2, 'added': 2, 'in_log': 2" in line


async def test_a_pipeline_keeps_to_its_own_rate_in_all_processes(database_url: str) -> None:
    gate = Gate()
    gate.open.set()
    pipelines = [waiting_pipeline(gate.wait), waiting_pipeline(gate.wait, "others")]
    shares = {"jobs": {"fetch": Share(rate_per_minute=4)}}
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(Engine(database_url, pipelines, shares=shares)) for _ in range(2)]
        record(one, *(job(str(n)) for n in range(10)))
        record(one, *(job(str(n), "others") for n in range(10)))

        def fetched(name: str) -> int:
            return one.store.status_views.status().pipelines[name].states["fetched"]

        async with working(one, two):
            await until(lambda: fetched("others") == 10)
            await until(lambda: fetched("jobs") == 4)
            await asyncio.sleep(0.3)
            assert fetched("jobs") == 4

            for engine in (one, two):
                engine.advance_clock(seconds=61)
            await until(lambda: fetched("jobs") == 8)
            await asyncio.sleep(0.3)
            assert fetched("jobs") == 8


async def test_a_slow_rate_is_one_start_in_minutes(database_url: str) -> None:
    gate = Gate()
    gate.open.set()
    shares = {"jobs": {"fetch": Share(rate_per_minute=0.2)}}
    async with Engine(database_url, [waiting_pipeline(gate.wait)], shares=shares) as engine:
        record(engine, job("a"), job("b"))
        async with working(engine):
            await until(lambda: engine.states("job").get("fetched") == 1)
            engine.advance_clock(seconds=280)
            await asyncio.sleep(0.3)
            assert engine.states("job") == {"fetched": 1, "found": 1}
            engine.advance_clock(seconds=21)
            await until(lambda: engine.states("job") == {"fetched": 2})


async def test_a_pipeline_takes_no_more_places_than_it_may(database_url: str) -> None:
    gate = Gate()
    shares = {"jobs": {"fetch": Share(concurrency=2)}}
    async with Engine(database_url, [waiting_pipeline(gate.wait)], shares=shares) as engine:
        record(engine, *(job(str(n)) for n in range(6)))
        async with working(engine):
            await until(lambda: len(gate.inside) == 2)
            await asyncio.sleep(0.2)
            assert engine.store.status_views.status().pipelines["jobs"].leased == 2
            gate.open.set()
            await until(lambda: engine.states("job") == {"fetched": 6})

    assert gate.most == 2


async def test_a_pipeline_is_claimed_in_its_own_batches(database_url: str) -> None:
    gate = Gate()
    shares = {"jobs": {"fetch": Share(batch=3)}}
    async with Engine(database_url, [waiting_pipeline(gate.wait)], shares=shares) as engine:
        record(engine, *(job(str(n)) for n in range(8)))
        with listening(logging.DEBUG) as lines:
            gate.open.set()
            await engine.work_until_idle()

        assert engine.states("job") == {"fetched": 8}
        loaded = [line for line in lines.told if line.startswith("loaded")]
        assert len(loaded) >= 3
        assert all(any(f"'loaded': {n}}}" in line for n in (1, 2, 3)) for line in loaded)


async def test_a_paced_pipeline_does_not_run_before_its_birth(database_url: str) -> None:
    shares = {"example": {"pure": Share(rate_per_minute=4)}}
    async with Engine(database_url, [example.pipeline()], shares=shares) as engine:
        record(engine, *(thing(str(n)) for n in range(10)))
        async with working(engine):
            await until(lambda: engine.states("thing") == {"shown": 4, "found": 6})
