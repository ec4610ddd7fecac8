"""The source reads the whole listing, whatever order the portal's replicas feel like."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from starlette.responses import HTMLResponse, JSONResponse
from tests.support.clock import ManualClock

from tidings.model.contracts import Kit
from tidings.model.errors import Misconfigured, SlowDown, Transient
from tidings.model.pipeline import Page, Run, Schedule
from tidings.net.client import Web
from tidings.pipelines.eu_funding.body import Opportunity
from tidings.pipelines.eu_funding.client import PortalSearch
from tidings.pipelines.eu_funding.source import Portal
from tidings.sample.eu_portal import EuPortal
from tidings.sample.serving import StandIn

HARVEST = int(datetime(2026, 8, 22, 12, tzinfo=UTC).timestamp() * 1000)
SEARCH = "/search-api/prod/rest/search"
NOTHING: Any = None


def a_result(number: int, **metadata) -> dict[str, Any]:
    known = {
        "identifier": [f"LIFE-{number:04}"],
        "title": [f"Call {number}"],
        "type": ["1"],
        "status": ["31094502"],
        "language": ["en"],
        "startDate": [f"2026-{number % 8 + 1:02}-01T00:00:00.000+0000"],
        "deadlineDate": ["2027-01-10T17:00:00.000+0000"],
        **metadata,
    }
    reference = f"{number}TOPICS{known['language'][0]}"
    return {"reference": reference, "url": "", "summary": f"Call {number}", "metadata": known}


@contextlib.asynccontextmanager
async def asked(portal: EuPortal) -> AsyncIterator[tuple[Portal, Kit]]:
    async with StandIn(portal.app) as server, Web(user_agent="tidings-tests/1", endpoints=[server.url]) as web:
        source = Portal(
            PortalSearch(server.url, pause_seconds=0), "https://ec.europa.eu/x", Schedule(every_seconds=7200)
        )
        yield source, Kit(web, NOTHING, NOTHING, NOTHING, ManualClock())


async def gather(portal: EuPortal, pages: list[Page], *, is_first: bool = False, now_ms: int = HARVEST) -> None:
    async with asked(portal) as (source, kit):
        async for page in source.pages(Run(source.name, now_ms, is_first=is_first), kit):
            pages.append(page)  # noqa: PERF401  # what came before a failure counts


async def pages_of(portal: EuPortal, *, is_first: bool = False, now_ms: int = HARVEST) -> list[Page]:
    pages: list[Page] = []
    await gather(portal, pages, is_first=is_first, now_ms=now_ms)
    return pages


def bodies(pages: list[Page]) -> dict[str, Opportunity]:
    found = [finding for page in pages for finding in page.findings]
    assert len({finding.key for finding in found}) == len(found)
    return {finding.key: msgspec.json.decode(finding.payload, type=Opportunity) for finding in found}


def recorded_results(samples) -> list[dict[str, Any]]:
    names = [f"sedia_search_open_page{n}.json" for n in range(1, 6)] + ["sedia_search_forthcoming_rebuilt.json"]
    return [row for name in names for row in json.loads((samples / "eu_funding" / name).read_text())["results"]]


async def test_the_recorded_listing_is_read_whole(samples):
    pages = await pages_of(EuPortal.of(recorded_results(samples)), is_first=True)

    found = bodies(pages)
    assert len(found) == 380
    assert [len(page.findings) for page in pages] == [100, 100, 100, 80]
    assert {each.status for each in found.values()} == {"open", "forthcoming"}
    assert all(each.is_baseline and each.found_at == HARVEST for each in found.values())
    assert [page.mark is not None for page in pages] == [False, False, False, True]


@pytest.mark.parametrize("seed", range(8))
async def test_nothing_is_lost_between_pages_of_disordered_replicas(seed):
    results = [a_result(n) for n in range(540)]
    portal = EuPortal.of(results, disorder=12, rng=random.Random(seed))

    found = bodies(await pages_of(portal))

    assert len(found) == 540


async def test_an_orderly_portal_is_asked_one_page_more_than_it_has():
    portal = EuPortal.of(a_result(n) for n in range(250))

    pages = await pages_of(portal, is_first=True)

    assert len(portal.searches) == 4
    assert pages[0].note == "4 requests: 250 listed, 250 seen, 250 current"


async def test_results_without_the_sorted_field_are_found_unsorted():
    results = [a_result(n, startDate=[]) if n % 50 == 0 else a_result(n) for n in range(300)]

    assert len(bodies(await pages_of(EuPortal.of(results)))) == 300


class Overstating(EuPortal):
    """A portal that counts more than it ever shows."""

    def _ordered(self, rows, sort):
        return [*super()._ordered(rows, sort), *rows[:20]]


async def test_the_walks_are_bounded_when_the_count_never_agrees():
    portal = Overstating.of(a_result(n) for n in range(120))

    pages = await pages_of(portal, is_first=True)

    assert len(bodies(pages)) == 120
    assert pages[0].note == "6 requests: 140 listed, 120 seen, 120 current"


async def test_the_form_is_multipart_with_json_parts():
    portal = EuPortal.of([a_result(1)])

    await pages_of(portal, is_first=True)

    assert portal.searches[0] == {
        "query": {
            "bool": {"must": [{"terms": {"type": ["1", "2", "8"]}}, {"terms": {"status": ["31094501", "31094502"]}}]}
        },
        "languages": ["en"],
        "sort": {"field": "startDate", "order": "DESC"},
    }
    assert portal.faults.requests[0][1].startswith(f"{SEARCH}?apiKey=SEDIA&text=***&pageSize=100&pageNumber=1")


class Deaf(EuPortal):
    """A portal that ignores the form, as the real one does with anything but multipart."""

    def _matching(self, asked):
        return self.listed()


def holding(rows, **options) -> EuPortal:
    """Return a portal that holds all of these rows, two of one reference too."""
    return EuPortal({str(number): row for number, row in enumerate(rows)}, **options)


OLD = ["SEDIA_PRD_CENTRICITY"]
PAIRS = {
    "the current row is open": (
        a_result(1, DATASOURCE=["SEDIA"]),
        a_result(1, DATASOURCE=OLD, startDate=["2021-03-01T00:00:00.000+0000"], title=["Old"]),
        ["Call 1"],
    ),
    "the current row is over": (
        a_result(1, DATASOURCE=["SEDIA"], deadlineDate=["2026-03-24T00:00:00.000+0000"]),
        a_result(1, DATASOURCE=OLD, startDate=["2021-03-01T00:00:00.000+0000"]),
        [],
    ),
    "both rows are of one database": (
        a_result(1, esDA_IngestDate=["2026-08-01T00:00:00.000+0000"], title=["Before"]),
        a_result(1, esDA_IngestDate=["2026-08-02T00:00:00.000+0000"], title=["After"]),
        ["After"],
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("order", [1, -1])
async def test_of_two_rows_with_one_reference_the_current_database_speaks(pair, order):
    *rows, titles = PAIRS[pair]
    found = bodies(await pages_of(holding(rows[::order])))

    assert [each.title for each in found.values()] == titles


async def test_two_rows_with_one_reference_are_two_results_of_the_count():
    first, second, _ = PAIRS["the current row is open"]

    (page,) = await pages_of(holding([first, second]), is_first=True)

    assert page.note == "2 requests: 2 listed, 2 seen, 1 current"


def reports(pages: list[Page]) -> tuple[Any, ...]:
    return (
        [(finding.key, finding.fingerprint, finding.payload) for page in pages for finding in page.findings],
        [each for page in pages for each in page.rejected],
    )


@pytest.mark.parametrize("seed", range(8))
async def test_the_same_rows_give_the_same_findings_in_any_order(seed, samples):
    rows = recorded_results(samples)
    rows += [a_result(7) | {"reference": ""}, a_result(8, title=[""]) | {"summary": None}]
    rows += [row for *pair, _ in PAIRS.values() for row in pair]
    rng = random.Random(seed)
    shuffled = holding(rng.sample(rows, len(rows)), disorder=12, rng=rng)

    orderly = reports(await pages_of(holding(rows), is_first=True))

    assert reports(await pages_of(shuffled, is_first=True)) == orderly
    assert len(orderly[0]) > 300
    assert len(orderly[1]) == 2


async def test_languages_are_folded_into_the_wanted_one():
    results = [a_result(1, language=[language]) for language in ("cs", "en", "bg")]

    pages = await pages_of(Deaf.of([*results, a_result(2, language=["fr"])]))

    assert {key: each.language for key, each in bodies(pages).items()} == {"1TOPICS": "en", "2TOPICS": "fr"}


async def test_a_topic_in_both_databases_is_one():
    old = {**a_result(1, DATASOURCE=["SEDIA_PRD_CENTRICITY"]), "reference": "1LIFE1716940800000"}

    assert list(bodies(await pages_of(EuPortal.of([old, a_result(1)])))) == ["1TOPICS"]


async def test_an_early_end_is_reported_and_a_foreseen_one_is_not():
    results = [
        a_result(1, status=["31094503"]),
        a_result(2, status=["31094503"], deadlineDate=["2026-08-21T17:00:00.000+0000"]),
        a_result(3, deadlineDate=["2026-08-21T17:00:00.000+0000"]),
    ]

    found = bodies(await pages_of(EuPortal.of(results)))

    assert {key: each.status for key, each in found.items()} == {"1TOPICS": "closed"}


async def test_the_first_run_reports_nothing_closed():
    results = [a_result(1, status=["31094503"]), a_result(2)]

    assert list(bodies(await pages_of(EuPortal.of(results), is_first=True))) == ["2TOPICS"]


@pytest.mark.parametrize("dates", [[], [""], ["until further notice"]])
async def test_an_open_call_without_a_readable_deadline_is_found(dates):
    (body,) = bodies(await pages_of(EuPortal.of([a_result(1, deadlineDate=dates)]))).values()

    assert (body.status, body.deadlines) == ("open", ())


async def test_every_recorded_call_without_a_deadline_is_found(samples):
    found = bodies(await pages_of(EuPortal.of(recorded_results(samples)), is_first=True))

    assert len([each for each in found.values() if not each.deadlines and each.status == "open"]) == 4


async def test_the_end_of_a_call_without_a_deadline_is_noticed():
    portal = EuPortal.of([a_result(1, deadlineDate=[]), a_result(2)])
    statuses, mark = [], None
    for status in ("31094502", "31094502", "31094503", "31094503"):
        portal.change("1TOPICSen", status=[status])
        async with asked(portal) as (source, kit):
            (page,) = [page async for page in source.pages(Run(source.name, HARVEST, mark=mark), kit)]
        mark = page.mark
        statuses.append({key: each.status for key, each in bodies([page]).items()}.get("1TOPICS"))

    assert statuses == ["open", "open", "closed", None]


async def test_a_call_without_a_deadline_that_is_only_missing_is_not_closed():
    portal = EuPortal.of([a_result(1, deadlineDate=[])])
    (before,) = await pages_of(portal)
    row = portal.results.pop("1TOPICSen")
    async with asked(portal) as (source, kit):
        (missing,) = [page async for page in source.pages(Run(source.name, HARVEST, mark=before.mark), kit)]
        portal.put(row)
        portal.change("1TOPICSen", status=["31094503"])
        (closed,) = [page async for page in source.pages(Run(source.name, HARVEST, mark=missing.mark), kit)]

    assert missing.findings == ()
    assert [each.status for each in bodies([closed]).values()] == ["closed"]


async def test_a_broken_result_is_rejected_and_the_rest_read():
    broken = a_result(1)
    broken["metadata"]["title"] = [""]
    broken["summary"] = None

    (page,) = await pages_of(EuPortal.of([broken, a_result(2)]))

    assert [finding.key for finding in page.findings] == ["2TOPICS"]
    assert [each.reason for each in page.rejected] == ["result 1TOPICSen has no usable title"]


async def test_an_empty_portal_completes_a_run():
    (page,) = await pages_of(EuPortal.of([]))

    assert page.findings == ()
    assert page.mark == {"at": HARVEST, "found": 0}


async def test_a_passing_fault_costs_nothing():
    portal = EuPortal.of(a_result(n) for n in range(150))
    portal.faults.script(SEARCH, HTMLResponse("Gateway Timeout", 504), HTMLResponse("<html>", 200))

    assert len(bodies(await pages_of(portal))) == 150


async def test_a_page_that_stays_broken_does_not_hold_back_the_others():
    portal = EuPortal.of(a_result(n) for n in range(300))
    bad = HTMLResponse("Gateway Timeout", 504)
    portal.faults.script(SEARCH, lambda _: None, bad, bad, bad)

    assert len(bodies(await pages_of(portal))) == 300


async def test_what_was_found_is_kept_when_the_portal_dies_at_the_end():
    portal = EuPortal.of(a_result(n) for n in range(150))
    portal.faults.script(SEARCH, *[lambda _: None] * 3, *[HTMLResponse("", 504)] * 3)
    pages: list[Page] = []

    with pytest.raises(Transient):
        await gather(portal, pages)

    assert len(bodies(pages)) == 150


async def test_a_dead_portal_fails_the_run():
    portal = EuPortal.of([a_result(1)])
    portal.faults.script(SEARCH, *[HTMLResponse("", 502)] * 3)

    with pytest.raises(Transient, match="the funding portal's search answered 502"):
        await pages_of(portal)


async def test_a_portal_that_asks_for_a_pause_is_obeyed():
    portal = EuPortal.of([a_result(1)])
    portal.faults.script(SEARCH, HTMLResponse("", 429, headers={"Retry-After": "30"}))

    with pytest.raises(SlowDown):
        await pages_of(portal)


async def test_a_refused_key_needs_a_person():
    portal = EuPortal.of([a_result(1)])
    portal.faults.script(SEARCH, JSONResponse({"message": "Unauthorized"}, 401))

    with pytest.raises(Misconfigured):
        await pages_of(portal)


async def test_the_same_listing_has_the_same_fingerprints_later():
    portal = EuPortal.of(a_result(n) for n in range(20))

    first = await pages_of(portal, is_first=True)
    later = await pages_of(portal, now_ms=HARVEST + 7_200_000)

    assert [f.fingerprint for p in first for f in p.findings] == [f.fingerprint for p in later for f in p.findings]


async def test_a_moved_deadline_changes_the_fingerprint():
    portal = EuPortal.of([a_result(1)])
    (before,) = await pages_of(portal)
    portal.change("1TOPICSen", deadlineDate=["2027-02-10T17:00:00.000+0000"])
    (after,) = await pages_of(portal)

    assert before.findings[0].key == after.findings[0].key
    assert before.findings[0].fingerprint != after.findings[0].fingerprint
