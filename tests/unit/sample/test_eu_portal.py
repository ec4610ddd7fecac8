"""The portal's stand-in reads forms as the real one does, and the sample world's calls are whole."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from tidings.net.client import FormPart, Web
from tidings.pipelines.eu_funding.results import parse_row
from tidings.sample.eu_portal import EuPortal
from tidings.sample.serving import StandIn

SEARCH = "/search-api/prod/rest/search?apiKey=SEDIA&text=***&pageSize=100&pageNumber=1"
START = 1_800_000_000.0


def a_result(number: int, language: str = "en", **metadata: list[str]) -> dict[str, Any]:
    known = {
        "language": [language],
        "status": ["31094502"],
        "type": ["1"],
        "startDate": [f"2026-01-{number:02}"],
        **metadata,
    }
    return {"reference": f"{number}TOPICS{language}", "url": "", "summary": "", "metadata": known}


def form(**parts: Any) -> list[FormPart]:
    return [FormPart(name, msgspec.json.encode(value), "application/json") for name, value in parts.items()]


async def ask(portal: EuPortal, path: str = SEARCH, **request: Any) -> Any:
    async with StandIn(portal.app) as server, Web(user_agent="tests/1", endpoints=[server.url]) as web:
        answer = await web.call(request.pop("method", "POST"), server.url + path, **request)
    try:
        return answer.status, json.loads(answer.body)
    except ValueError:
        return answer.status, answer.body.decode()


def references(answer: tuple[int, Any]) -> list[str]:
    return [row["reference"] for row in answer[1]["results"]]


async def test_a_form_chooses_by_terms_and_language():
    portal = EuPortal.of([a_result(1), a_result(2, "fr"), a_result(3, status=["31094503"])])
    query = {"bool": {"must": [{"terms": {"status": ["31094502"]}}, {"term": {"type": "1"}}]}}

    assert references(await ask(portal, data=form(query=query, languages=["en"]))) == ["1TOPICSen"]


async def test_a_json_body_is_ignored():
    portal = EuPortal.of([a_result(1), a_result(2, "fr")])

    assert len(references(await ask(portal, json={"languages": ["en"]}))) == 2


async def test_sorting_drops_what_lacks_the_field():
    portal = EuPortal.of([a_result(1), a_result(2, startDate=[""]), a_result(3)])
    asked = form(sort={"field": "startDate", "order": "DESC"})

    status, told = await ask(portal, data=asked)

    assert [row["reference"] for row in told["results"]] == ["3TOPICSen", "1TOPICSen"]
    assert (status, told["totalResults"], told["sort"]) == (200, 2, "startDate:DESC")


async def test_errors_are_those_of_the_service():
    portal = EuPortal.of([])
    prefix = form(query={"bool": {"must": [{"prefix": {"identifier": "X"}}]}})

    assert (await ask(portal, data=prefix))[0] == 400
    assert (await ask(portal, SEARCH.replace("apiKey=SEDIA", "apiKey=x")))[0] == 401
    assert references(await ask(portal)) == []


async def test_facets_count_codes():
    portal = EuPortal.of([a_result(1), a_result(2)], names={"status": {"31094502": "Open for submission"}})

    _, told = await ask(portal, SEARCH.replace("/search?", "/facet?"))

    status = next(facet for facet in told["facets"] if facet["name"] == "status")
    assert [(each["rawValue"], each["value"], each["count"]) for each in status["values"]] == [
        ("31094502", "Open for submission", 2)
    ]


async def test_details_are_found_in_lower_case_only():
    portal = EuPortal.of([a_result(1, identifier=["LIFE-1"], descriptionByte=["<p>x</p>"])])
    base = "/info/funding-tenders/opportunities/data/topicDetails"

    assert (await ask(portal, f"{base}/life-1.json", method="GET"))[1]["TopicDetails"]["description"] == "<p>x</p>"
    assert (await ask(portal, f"{base}/LIFE-1.json", method="GET"))[0] == 404


async def test_the_listing_is_an_empty_shell():
    portal = EuPortal.of([a_result(1)])
    path = "/info/funding-tenders/opportunities/portal/screen/opportunities/calls-for-proposals"

    assert "<app-root></app-root>" in (await ask(portal, path, method="GET"))[1]


def test_every_call_of_the_sample_world_can_be_read():
    portal = EuPortal.from_package(now=lambda: START)

    found = [parse_row(row, pages_url="https://x.example", now_ms=int(START * 1000)) for row in portal.results.values()]

    assert len(found) > 50
    assert {each.status for each in found} >= {"open", "forthcoming", "closed"}
    assert all(each.title and each.description for each in found)


def test_calls_arrive_and_change_with_time():
    now = START
    portal = EuPortal.from_package(now=lambda: now)
    at_first = len(portal.listed())
    before = json.dumps([row["metadata"] for row in portal.listed()])

    now = START + 3_600

    assert len(portal.listed()) > at_first
    assert portal.changes == []
    assert json.dumps([row["metadata"] for row in portal.listed()][:at_first]) != before
