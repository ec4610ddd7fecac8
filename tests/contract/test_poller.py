"""The poller: pages with their cursor, the mark with the completed run, one owner, patience with failing sources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support import example
from tests.support.engine import Engine
from tests.support.example import ThingSource, thing
from tests.support.waiting import until

from tidings.discover.schedule import seconds_until_due
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, Misconfigured, Permanent, SlowDown, Transient
from tidings.model.item import Rejected
from tidings.model.pipeline import Page, Run, Schedule
from tidings.model.views import RunView

SOURCE = "example.things"


@dataclass
class SteppedSource:
    """A source that stops before each page until the test lets it go on."""

    pages_to_give: list[Page]
    name: str = SOURCE
    schedule: Schedule = Schedule(every_seconds=60)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    steps: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        self.asked.set()
        for page in self.pages_to_give:
            await self.steps.acquire()
            yield page


def a_page(*keys: str, **more: Any) -> Page:
    return Page(tuple(thing(key) for key in keys), **more)


async def ask(engine: Engine, **more: Any) -> RunView:
    view = await engine.app.poller.ask(SOURCE, force=True, **more)
    assert view is not None
    return view


def next_in_seconds(engine: Engine) -> float:
    (row,) = engine.store.schedules.all()
    return (row.next_at - engine.now_ms()) / 1000


async def test_a_run_is_told_where_the_last_one_ended(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a", cursor=1), a_page("b", cursor=2, mark="newest")])
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        await ask(engine)
        await ask(engine)

        first, second = source.runs
        assert (first.cursor, first.mark, first.is_first) == (None, None, True)
        assert (second.cursor, second.mark, second.is_first) == (2, "newest", False)
        assert abs(second.now_ms - engine.now_ms()) < 60_000


async def test_a_run_is_recorded_with_what_it_found(database_url: str) -> None:
    pages = [
        a_page("a", "b", credits=2, rejected=(Rejected(3, "no title"),)),
        a_page("b", "c", credits=1, note="the archive is slow"),
    ]
    source = ThingSource(all_pages=pages)
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        await ask(engine)
        await engine.work_until_idle()
        engine.advance_clock(seconds=8 * 86_400)
        source.all_pages = [a_page("a", "d")]
        await ask(engine)

        second, first = engine.store.schedules.runs(SOURCE)
        assert (first.found, first.new, first.unchanged, first.rejected) == (4, 3, 1, 1)
        assert (first.pages, first.credits, first.error, first.note) == (2, 3, None, "the archive is slow")
        assert (second.found, second.new, second.unchanged, second.trimmed) == (2, 1, 1, 3)


async def test_pages_before_a_failure_stay_and_the_mark_does_not_move(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a", cursor=1), a_page("b", cursor=2, mark="m")], error=Transient("cut off"))
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        view = await ask(engine)

        assert view.error == "cut off"
        assert (view.pages, view.new) == (2, 2)
        assert engine.store.intake.cursor(SOURCE) == (2, None, False)

        source.error = None
        again = await ask(engine)
        assert (again.new, again.unchanged) == (0, 2)
        assert engine.store.intake.cursor(SOURCE) == (2, "m", True)


async def test_a_run_with_options_is_no_completed_run(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a", cursor=1, mark="m")])
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        await ask(engine, options={"since": "2020-01-01"})

        assert source.runs[0].options == {"since": "2020-01-01"}
        assert engine.store.intake.cursor(SOURCE)[1:] == (None, False)


async def test_what_is_asked_for_and_cannot_be_is_refused_and_is_no_failure_of_the_source(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a", cursor=1)], error=BadInput("no such year"))
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        with pytest.raises(BadInput, match="no such year"):
            await ask(engine, options={"since": "the flood"})
        (row,) = engine.store.schedules.all()
        assert (row.failures, row.lease_until) == (0, None)
        assert next_in_seconds(engine) <= 0

        assert (await ask(engine)).error == "no such year"
        assert engine.store.schedules.all()[0].failures == 1


async def test_whoever_asks_is_told_of_every_page_once_it_is_kept(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a", cursor=1), a_page("b", "c", cursor=2)])
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        told: list[tuple[int, Any]] = []
        await ask(engine, on_page=lambda page: told.append((len(page.findings), page.cursor)))

        assert told == [(1, 1), (2, 2)]


async def test_a_failing_source_is_asked_less_and_less_often(database_url: str) -> None:
    source = ThingSource(error=Transient("down"))
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        waits = []
        for _ in range(5):
            await ask(engine)
            waits.append(next_in_seconds(engine))
        for wait, planned in zip(waits, [30, 60, 120, 240, 480], strict=True):
            assert 0.8 * planned - 2 <= wait <= 1.2 * planned

        source.error = None
        source.all_pages = [a_page("a")]
        assert (await ask(engine)).error is None
        assert 57 <= next_in_seconds(engine) <= 60
        (row,) = engine.store.schedules.all()
        assert (row.failures, row.last_error) == (0, None)


async def test_backoff_ends_at_six_hours(database_url: str) -> None:
    source = ThingSource(error=Permanent("gone"))
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        for _ in range(14):
            await ask(engine)

        assert 0.8 * 6 * 3600 - 2 <= next_in_seconds(engine) <= 1.2 * 6 * 3600


async def test_a_surprise_of_a_source_is_recorded_as_its_error(database_url: str) -> None:
    source = ThingSource(error=ZeroDivisionError("a surprise"))
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        assert (await ask(engine)).error == "ZeroDivisionError: a surprise"


async def test_being_asked_to_slow_down_is_no_failure(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a")], error=SlowDown("no credits left", retry_after_seconds=500))
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        view = await ask(engine)

        assert (view.error, view.note) == (None, "no credits left")
        assert 495 <= next_in_seconds(engine) <= 500
        (row,) = engine.store.schedules.all()
        assert row.failures == 0
        assert engine.store.intake.cursor(SOURCE)[2] is False


async def test_a_source_may_wish_for_another_time(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a", next_check_seconds=7)])
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        await ask(engine)
        assert 4 <= next_in_seconds(engine) <= 7


async def test_one_poller_asks_a_source_at_a_time(database_url: str) -> None:
    slow, other = SteppedSource([a_page("a"), a_page("b")]), ThingSource(all_pages=[a_page("c")])
    async with Engine(database_url, [example.pipeline(slow)]) as one, Engine(
        database_url, [example.pipeline(other)]
    ) as two:  # fmt: skip
        asking = asyncio.create_task(ask(one))
        await slow.asked.wait()

        assert await two.app.poller.ask(SOURCE, force=True) is None
        assert other.runs == []
        slow.steps.release()
        slow.steps.release()
        assert (await asking).new == 2
        assert (await ask(two)).new == 1


async def test_a_poller_that_lost_its_turn_appends_no_more(database_url: str) -> None:
    """Its lease ran out while a page was awaited; another one asks now, and two must not move one cursor."""
    pages = [a_page("a", cursor=1), a_page("b", cursor=2), a_page("c", cursor=3), a_page("d", cursor=4)]
    slow, heir = SteppedSource(pages), ThingSource(all_pages=[a_page("h", cursor=100, mark="m")])
    async with Engine(database_url, [example.pipeline(slow)], turn_seconds=300) as one, Engine(
        database_url, [example.pipeline(heir)]
    ) as two:  # fmt: skip
        asking = asyncio.create_task(ask(one))
        slow.steps.release()
        slow.steps.release()
        await until(lambda: one.store.intake.unmerged("example") == 1)
        for engine in (one, two):
            engine.advance_clock(seconds=301)
        assert (await ask(two)).new == 1
        slow.steps.release()
        slow.steps.release()
        view = await asking

        assert "turn" in (view.error or "")
        assert two.store.intake.cursor(SOURCE) == (100, "m", True)
        (row,) = two.store.schedules.all()
        assert row.failures == 0


async def test_a_run_longer_than_its_turn_keeps_it(database_url: str) -> None:
    slow = SteppedSource([a_page("a")])
    async with Engine(database_url, [example.pipeline(slow)], turn_seconds=0.5) as engine:
        asking = asyncio.create_task(ask(engine))
        await slow.asked.wait()
        first = engine.store.schedules.all()[0].lease_until or 0
        await until(lambda: (engine.store.schedules.all()[0].lease_until or 0) > first + 1_000)
        slow.steps.release()
        assert (await asking).error is None

        assert engine.store.schedules.all()[0].lease_until is None


async def test_a_run_ends_where_its_turn_is_lost(database_url: str) -> None:
    """It still waits for its first page when another poller has the source; nobody needs that page any more."""
    slow, heir = SteppedSource([a_page("a", cursor=1)]), ThingSource(all_pages=[a_page("h", cursor=100)])
    async with Engine(database_url, [example.pipeline(slow)], turn_seconds=5) as one, Engine(
        database_url, [example.pipeline(heir)]
    ) as two:  # fmt: skip
        asking = asyncio.create_task(ask(one))
        await slow.asked.wait()
        two.advance_clock(seconds=600)
        assert (await ask(two)).new == 1
        ended, _ = await asyncio.wait({asking}, timeout=20)
        slow.steps.release()
        view = await asking

        assert ended, "it went on to its first page"
        assert "another poller" in (view.error or "")
        assert two.store.intake.cursor(SOURCE)[0] == 100


async def test_a_paused_source_is_not_asked(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a")])
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        engine.store.switches.pause(f"source:{SOURCE}", reason="rest")
        assert await engine.discover() == []
        engine.store.switches.resume(f"source:{SOURCE}")
        assert len(await engine.discover()) == 1


async def test_a_source_is_asked_when_it_is_due_and_not_before(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a")])
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        assert len(await engine.discover_due()) == 1
        assert await engine.discover_due() == []
        engine.advance_clock(seconds=61)
        assert len(await engine.discover_due()) == 1
        engine.store.switches.check_now(SOURCE)
        assert len(await engine.discover_due()) == 1


async def test_cron_goes_by_the_database_clock(database_url: str) -> None:
    """The machine's clock may be days off; three o'clock is three o'clock in the database."""
    source = ThingSource(schedule=Schedule(cron="0 3 * * *"), all_pages=[a_page("a")])
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        engine.advance_clock(seconds=7.5 * 3600)
        await ask(engine)

        (row,) = engine.store.schedules.all()
        due = datetime.fromtimestamp(row.next_at / 1000, UTC)
        assert abs((due - due.replace(hour=3, minute=0, second=0, microsecond=0)).total_seconds()) < 30
        assert 0 < next_in_seconds(engine) <= 86_400


def test_cron_is_read_in_utc() -> None:
    at = datetime(2026, 3, 29, 1, 59, tzinfo=UTC)
    assert seconds_until_due(Schedule(cron="30 2 * * *"), at) == 31 * 60
    assert seconds_until_due(Schedule(every_seconds=90), at) == 90


@pytest.mark.parametrize("schedule", [Schedule(), Schedule(every_seconds=0), Schedule(cron="every day")])
async def test_a_schedule_that_never_comes_is_refused(database_url: str, schedule: Schedule) -> None:
    engine = Engine(database_url, [example.pipeline(ThingSource(schedule=schedule))])
    with pytest.raises(Misconfigured, match=SOURCE):
        async with engine:
            pass
    await engine.app.__aexit__(None, None, None)


async def test_the_loop_asks_what_is_due_until_it_is_stopped(database_url: str) -> None:
    source = ThingSource(all_pages=[a_page("a")])
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        stop = asyncio.Event()
        running = asyncio.create_task(engine.app.poller.run(stop))
        await until(lambda: engine.store.schedules.all()[0].last_success_at)
        engine.advance_clock(seconds=61)
        await until(lambda: len(source.runs) == 2)
        stop.set()
        async with asyncio.timeout(60):
            await running


async def test_a_stop_in_the_middle_of_a_run_gives_the_turn_back_and_keeps_what_was_read(database_url: str) -> None:
    source = SteppedSource([a_page("a", cursor=1), a_page("b", cursor=2, mark="m"), a_page("c", cursor=3)])
    async with Engine(database_url, [example.pipeline(source)]) as engine:
        stop = asyncio.Event()
        running = asyncio.create_task(engine.app.poller.run(stop))
        source.steps.release()
        source.steps.release()
        await until(lambda: engine.store.intake.unmerged("example") == 1)
        stop.set()
        async with asyncio.timeout(60):
            await running

        (row,) = engine.store.schedules.all()
        assert row.lease_until is None
        assert row.failures == 0
        assert row.last_success_at is None
        assert engine.store.intake.cursor(SOURCE) == (2, None, False)
        assert engine.store.intake.unmerged("example") == 2
        assert next_in_seconds(engine) <= 0


async def test_a_failed_look_is_a_warning_that_is_not_repeated(
    database_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.watch.logs.log.propagate", True)
    source = ThingSource(error=Transient("the source is on fire"))
    with caplog.at_level("INFO", logger="tidings"):
        async with Engine(database_url, [example.pipeline(source)]) as engine:
            for _ in range(3):
                await engine.discover()
    told = [record for record in caplog.records if "on fire" in record.getMessage()]
    assert [record.levelname for record in told] == ["WARNING"]
    assert told[0].getMessage() == "looking at example.things failed: the source is on fire"


async def test_a_refused_entry_is_named_once_and_counted_each_time(
    database_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.watch.logs.log.propagate", True)
    source = ThingSource(all_pages=[a_page("a", rejected=(Rejected(3, "no title"),))])
    with caplog.at_level("INFO", logger="tidings"):
        async with Engine(database_url, [example.pipeline(source)]) as engine:
            runs = [run for _ in range(3) for run in await engine.discover()]
            source.all_pages = [a_page("a", rejected=(Rejected(3, "no title"), Rejected(4, "no address")))]
            runs += await engine.discover()
    assert [run.rejected for run in runs] == [1, 1, 1, 2]
    named = [vars(each)["fields"]["reason"] for each in caplog.records if each.getMessage() == "entry rejected"]
    assert named == ["no title", "no address"]
