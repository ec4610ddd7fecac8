from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from starlette.responses import JSONResponse, PlainTextResponse
from tests.support.clock import ManualClock

from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, Misconfigured, SlowDown, Transient
from tidings.model.item import LOW
from tidings.model.pipeline import Page, Run, Schedule
from tidings.net.client import FetchLimits, Web
from tidings.pipelines.hacker_news.body import ItemBody
from tidings.pipelines.hacker_news.source import FirebaseSource
from tidings.pipelines.hacker_news.unread import WAITING_MAX
from tidings.sample.hacker_news import HackerNews
from tidings.sample.serving import Faults, StandIn


class Poller:
    """Asks a source the way the poller does, every minute: cursors are kept with pages, marks with completed runs."""

    def __init__(self, source: FirebaseSource, fetcher: Web) -> None:
        self.source = source
        self.kit = Kit(
            fetcher=fetcher,
            extractor=cast(Any, None),
            enricher=cast(Any, None),
            ledger=cast(Any, None),
            clock=ManualClock(),
        )
        self.cursor: Any = None
        self.mark: Any = None
        self.now_ms = 0
        self.pages: list[Page] = []

    async def run(self, *, pages_max: int | None = None, **options: Any) -> list[int]:
        """Return the ids found, in order."""
        self.pages = []
        self.now_ms += 60_000
        run = Run(self.source.name, self.now_ms, cursor=self.cursor, mark=self.mark, options=options)
        async for page in self.source.pages(run, self.kit):
            self.pages.append(page)
            if page.cursor is not None:
                self.cursor = msgspec.json.decode(msgspec.json.encode(page.cursor))
            if pages_max is not None and len(self.pages) >= pages_max:
                break
        else:
            self.mark = self.pages[-1].mark
        return [int(finding.key) for page in self.pages for finding in page.findings]

    @property
    def rejected(self) -> list[str]:
        return [each.reason for page in self.pages for each in page.rejected]


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def world(clock):
    return HackerNews(now_ms=clock.now_ms)


@pytest.fixture
def faults():
    return Faults()


@pytest.fixture
async def poller(world, faults):
    async with StandIn(faults.wrap(world.app)) as server:
        limits = FetchLimits(backoff_base_seconds=0.001, backoff_cap_seconds=0.01)
        async with Web(user_agent="tidings-test", endpoints=[server.url], limits=limits) as web:
            source = FirebaseSource(
                f"{server.url}/v0", Schedule(every_seconds=60), concurrency=8, page_size=20, first_items=10, list_size=5
            )
            yield Poller(source, web)


def stories(world, count, first=1):
    for number in range(first, first + count):
        world.add(id=number, type="story", title=f"Story {number}", by="a", score=1)


async def test_the_first_run_takes_the_newest_and_what_is_listed(world, poller, clock):
    stories(world, 100)
    world.change(7, score=500)
    clock.advance(seconds=3600)

    found = await poller.run()

    assert found[:10] == list(range(91, 101))
    assert 7 in found[10:]
    assert poller.cursor["walked"] == 100


async def test_later_runs_read_only_what_is_new_or_changed(world, poller, clock):
    stories(world, 30)
    await poller.run()
    clock.advance(seconds=3600)
    assert await poller.run() == []

    stories(world, 3, first=31)
    world.change(25, score=9)

    assert sorted(await poller.run()) == [25, 31, 32, 33]


async def test_findings_carry_source_and_body(world, poller):
    world.add(id=1, type="story", title="T", by="a", score=3, url="https://a.example/")

    await poller.run()

    (finding,) = poller.pages[0].findings
    body = msgspec.json.decode(finding.payload, type=ItemBody)
    assert (body.source_type, body.title, body.score) == ("FIREBASE", "T", 3)


async def test_an_id_without_an_item_is_asked_again(world, poller):
    stories(world, 20)
    world.hide(20, requests=2)

    assert 20 not in await poller.run()
    assert poller.cursor["again"] == {"20": 1}
    assert 20 not in await poller.run()
    assert 20 in await poller.run()
    assert "again" not in poller.cursor


async def test_an_id_that_stays_without_an_item_is_given_up(world, poller, clock):
    stories(world, 20)
    world.hide(20, requests=10_000)
    clock.advance(seconds=3600)

    runs = 0
    await poller.run()
    while "again" in poller.cursor:
        await poller.run()
        runs += 1

    assert runs == 10
    assert poller.rejected == []


async def test_a_run_is_bounded_and_goes_on_at_once(world, poller):
    stories(world, 50)
    await poller.run()
    stories(world, 100, first=51)
    poller.source.items_per_run = 60

    found = await poller.run()

    assert max(found) == poller.cursor["walked"] == 110
    assert poller.pages[-1].next_check_seconds == 1.0
    assert set(range(111, 151)) <= set(await poller.run())
    assert poller.pages[-1].next_check_seconds is None


async def test_a_walk_goes_on_where_it_was_broken_off(world, poller):
    stories(world, 50)
    await poller.run()
    stories(world, 60, first=51)

    first = await poller.run(pages_max=1)
    rest = await poller.run()

    assert first == list(range(51, 71))
    assert rest[:40] == list(range(71, 111))


async def test_threads_older_than_our_start_are_completed(world, poller):
    stories(world, 1)
    for number, parent in [(2, 1), (3, 2), (4, 1)]:
        world.add(id=number, type="comment", parent=parent, text="old", by="b")
    stories(world, 40, first=5)
    world.add(id=45, type="comment", parent=3, text="new", by="c")
    poller.source.listings = ()
    world.maxitem = 45
    poller.source.first_items = 1

    found = await poller.run()

    assert found[0] == 45
    assert {1, 2, 3, 4} <= set(found)
    assert set(poller.source._known) >= {1, 2, 3, 4}


async def test_thread_reading_is_bounded_and_the_rest_waits(world, poller, clock):
    stories(world, 1)
    for number in range(2, 40):
        world.add(id=number, type="comment", parent=1, text="old", by="b")
    clock.advance(seconds=3600)
    world.add(id=40, type="comment", parent=1, text="new", by="c")
    poller.source.listings = ()
    poller.source.first_items = 1
    poller.source.thread_items = 20

    first, second, third = await poller.run(), await poller.run(), await poller.run()

    assert [len(set(found) - {40, 1}) for found in (first, second, third)] == [20, 18, 0]
    assert set(first) | set(second) == set(range(1, 41))


async def test_deleted_and_dead_items_and_odd_types_are_found(world, poller):
    world.add(id=1, type="story", title="T", by="a")
    world.add(id=2, type="comment", parent=1, text="x", by="b")
    world.delete(2)
    world.add(id=3, type="comment", parent=1, text="[dead]", dead=True, by="b")
    world.add(id=4, type="banana", by="b")

    await poller.run()

    bodies = {f.key: msgspec.json.decode(f.payload, type=ItemBody) for page in poller.pages for f in page.findings}
    assert (bodies["2"].deleted, bodies["2"].text) == (True, None)
    assert (bodies["3"].dead, bodies["4"].type) == (True, "banana")


async def test_a_malformed_item_is_reported_and_the_rest_goes_on(world, poller, faults):
    stories(world, 6)
    faults.script("/v0/item/3.json", JSONResponse({"id": 3, "kids": "x"}))
    faults.script("/v0/item/4.json", JSONResponse({"id": 5}))

    found = await poller.run()

    assert set(found) >= {1, 2, 5, 6}
    assert "item 3: kids: expected array, got str" in poller.rejected
    assert "item 4: the answer is item 5" in poller.rejected


async def test_single_failures_are_asked_again(world, poller, faults, clock):
    stories(world, 8)
    faults.script("/v0/item/3.json", *[PlainTextResponse("no", 500)] * 3)
    faults.script("/v0/item/5.json", *[PlainTextResponse("<html>proxy</html>")] * 3)
    clock.advance(seconds=3600)
    poller.source.listings = ()

    assert set(await poller.run()) == {1, 2, 4, 6, 7, 8}
    assert set(await poller.run()) == {3, 5}


async def test_a_service_in_trouble_fails_the_run_and_moves_nothing(world, poller, faults):
    stories(world, 8)
    faults.script("/v0/item", *[PlainTextResponse("no", 503)] * 24)

    with pytest.raises(Transient):
        await poller.run()
    assert poller.cursor is None

    assert set(await poller.run()) >= set(range(1, 9))


async def test_a_rate_limit_and_a_closed_door_are_passed_on(world, poller, faults):
    stories(world, 8)
    faults.script("/v0/item/2.json", PlainTextResponse("slow", 429, headers={"retry-after": "7"}))
    with pytest.raises(SlowDown) as caught:
        await poller.run()
    assert caught.value.retry_after_seconds == 7

    faults.script("/v0/maxitem", JSONResponse({"error": "Permission denied"}, 401))
    with pytest.raises(Misconfigured):
        await poller.run()

    faults.script("/v0/maxitem", JSONResponse("many"))
    with pytest.raises(Transient, match="no id"):
        await poller.run()


async def test_requests_run_side_by_side_up_to_the_limit(world, poller):
    stories(world, 60)
    world.answers_after_seconds = 0.01
    poller.source.first_items = 60

    await poller.run()

    assert 4 <= world.most_at_once <= 8


async def test_a_backfill_reads_a_range_and_says_how_far_it_is(world, poller, clock):
    stories(world, 100)
    clock.advance(seconds=3600)
    await poller.run()
    walked, mark = poller.cursor["walked"], poller.mark

    found = await poller.run(**{"from": 11, "to": 60})

    assert found == list(range(11, 61))
    source = poller.source
    assert [source.progress(page.cursor) for page in poller.pages] == [(20, 50), (40, 50), (50, 50), None]
    assert [page.note for page in poller.pages if page.note] == ["read from 11 to 60"]
    assert {finding.priority for page in poller.pages for finding in page.findings} == {LOW}
    assert (poller.cursor["walked"], poller.cursor.get("backfill"), poller.mark) == (walked, None, mark)
    assert await poller.run() == []


async def test_a_broken_backfill_goes_on_where_it_stopped(world, poller):
    stories(world, 100)

    first = await poller.run(pages_max=2, **{"from": 1, "to": 90})
    rest = await poller.run(**{"from": 1, "to": 90})

    assert first == list(range(1, 41))
    assert rest == list(range(41, 91))


async def test_an_id_that_fails_in_a_backfill_is_asked_for_again_at_its_end(world, poller, faults):
    stories(world, 100)
    faults.script("/v0/item/45.json", *[PlainTextResponse("no", 500)] * 3)

    found = await poller.run(**{"from": 1, "to": 90})

    assert found == [*(number for number in range(1, 91) if number != 45), 45]
    assert poller.pages[-1].note == "read from 1 to 90"
    assert poller.cursor.get("backfill") is None


async def test_many_missing_ids_are_counted_and_the_first_named(world, poller, faults):
    stories(world, 60)
    for number in range(1, 60, 2):
        faults.script(f"/v0/item/{number}.json", *[JSONResponse({"error": "Permission denied"}, 401)] * 2)

    await poller.run(**{"from": 1, "to": 60})

    assert "30 ids could not be read: 1, 3, 5," in (poller.pages[-1].note or "")
    assert "39 and 10 more; the same command" in (poller.pages[-1].note or "")
    assert [entry.id for entry in poller.source.unread(poller.cursor)] == list(range(1, 60, 2))
    assert len(await poller.run(**{"from": 1, "to": 60})) == 30


async def test_a_rate_limit_in_a_page_keeps_what_was_read_and_the_walk_goes_on_behind_it(world, poller, faults):
    stories(world, 20)
    poller.source.first_items = 20
    poller.source.concurrency = 2
    faults.script("/v0/item/5.json", *[PlainTextResponse("slow", 429)] * 2)

    with pytest.raises(SlowDown):
        await poller.run()
    walked = poller.cursor["walked"]
    assert 5 <= walked < 20
    assert {int(finding.key) for page in poller.pages for finding in page.findings} >= set(range(1, walked + 1)) - {5}

    with pytest.raises(SlowDown):
        await poller.run()
    assert poller.cursor["walked"] == 20
    assert 5 in await poller.run()


async def test_a_walk_waits_where_too_many_ids_are_unread(world, poller):
    stories(world, 30)
    await poller.run()
    poller.cursor["unread"] = {str(number): [1, 10**15, "answered 500"] for number in range(100, 100 + WAITING_MAX)}
    stories(world, 5, first=31)

    assert await poller.run() == []
    assert (poller.cursor["walked"], poller.pages[-1].next_check_seconds) == (30, None)
    with pytest.raises(BadInput, match="--unread"):
        await poller.run(**{"from": 1, "to": 20})


async def test_a_backfill_ends_at_the_newest_item_and_what_is_above_is_refused(world, poller):
    stories(world, 30)

    found = await poller.run(**{"from": 25, "to": 10**12})

    assert found == list(range(25, 31))
    assert poller.pages[-1].note == "read from 25 to 30"
    with pytest.raises(BadInput, match="the newest item is 30"):
        await poller.run(**{"from": 31, "to": 40})


async def test_a_backfill_before_the_first_run_is_no_baseline(world, poller):
    stories(world, 40)

    await poller.run(**{"from": 1, "to": 5})

    assert set(await poller.run()) >= set(range(31, 41))


@pytest.mark.parametrize(
    "options", [{"from": 5}, {"to": 5}, {"from": 6, "to": 5}, {"from": 0, "to": 5}, {"from": "1", "to": 2}]
)
async def test_a_range_that_is_none_is_refused(poller, options):
    with pytest.raises(BadInput, match="backfill"):
        await poller.run(**options)
