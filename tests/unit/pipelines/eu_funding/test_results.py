"""Search results, as recorded and as badly as they come."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.errors import BadInput, Transient
from tidings.pipelines.eu_funding.body import (
    Opportunity,
    deadlines_ahead,
    next_deadline,
    same_deadlines,
    spoken_date,
)
from tidings.pipelines.eu_funding.client import parse_answer
from tidings.pipelines.eu_funding.results import judged, key_of, parse_row, parse_time, plain_text
from tidings.pipelines.eu_funding.saved_page import parse_opportunities

PAGES_URL = "https://ec.europa.eu/info/funding-tenders/opportunities"
HARVEST = int(datetime(2026, 8, 22, 12, tzinfo=UTC).timestamp() * 1000)


def a_row(**metadata):
    known = {
        "identifier": ["LIFE-2027-01"],
        "title": ["Clean rivers"],
        "type": ["1"],
        "status": ["31094502"],
        "language": ["en"],
        "deadlineDate": ["2027-01-10T17:00:00.000+0000"],
    }
    return {"reference": "501TOPICSen", "url": "", "summary": "Clean rivers", "metadata": {**known, **metadata}}


def parse(row, now_ms=HARVEST):
    return parse_row(row, pages_url=PAGES_URL, now_ms=now_ms)


def recorded(samples):
    pages = [(samples / "eu_funding" / f"sedia_search_open_page{n}.json").read_bytes() for n in range(1, 6)]
    return [row for page in pages for row in parse_answer(page).rows]


def test_every_recorded_result_can_be_read(samples):
    rows = recorded(samples)

    found = [parse(row) for row in rows]

    assert len(found) == 487
    assert len({key_of(each) for each in found}) == 478
    assert {each.type for each in found} == {"grant", "call", "cascade"}
    assert all(each.title and each.identifier and each.url.startswith("https://") for each in found)
    assert all(each.programme and not each.programme.isdigit() for each in found)


def test_open_means_a_deadline_ahead_or_none_stated(samples):
    found = {key_of(each): each for each in map(parse, recorded(samples))}.values()

    stale = [each for each in found if each.status == "closed"]
    assert len(stale) == 158
    assert all(not deadlines_ahead(each, HARVEST) for each in stale)
    assert all(deadlines_ahead(each, HARVEST) for each in found if each.status == "open" and each.deadlines)
    assert sum(each.status == "open" and not each.deadlines for each in found) == 4
    assert sum(each.is_legacy for each in stale) > 140


def test_no_link_leads_to_a_data_file(samples):
    assert not [each.url for each in map(parse, recorded(samples)) if each.url.endswith(".json")]


def test_a_later_cut_off_keeps_a_call_open(samples):
    rows = json.loads((samples / "eu_funding" / "sedia_cascade_multiple_cutoffs.json").read_text())["results"]

    internships, other, *_ = [parse(row) for row in rows]

    assert internships.title == "METU Internships Offer"
    assert internships.status == "open"
    assert internships.budget_eur == 30_500
    assert next_deadline(internships, HARVEST) == "2026-09-02T03:59:00Z"
    assert internships.url == other.url
    assert key_of(internships) != key_of(other)


def test_a_full_result_is_read_whole(samples):
    row = json.loads((samples / "eu_funding" / "sedia_full_metadata.json").read_text())["results"][0]

    found = parse(row)

    assert (found.status, found.programme, found.language) == ("forthcoming", "HORIZON", "es")
    assert found.budget_eur == 20_000_000
    assert found.deadlines == ("2027-09-21T00:00:00Z",)
    assert found.ingested == "2026-07-06T14:31:11Z"
    assert "Personalised medicine" in found.keywords
    assert found.description.startswith("Resultado esperado:\nLas propuestas")
    assert key_of(found) == "50140738TOPICS"


def test_languages_of_one_topic_share_a_key(samples):
    rows = json.loads((samples / "eu_funding" / "sedia_same_topic_three_languages.json").read_text())["results"]
    for row in rows:
        row["metadata"]["status"] = ["31094502"]

    assert {key_of(parse(row)) for row in rows} == {"45749859HORIZONTMAMSCADoctoralNetworks1716940800000"}


@pytest.mark.parametrize(
    ("reference", "language", "key"),
    [
        ("501TOPICSen", "en", "501TOPICS"),
        ("186723PROSPECTSEN", "en", "186723PROSPECTS"),
        ("15123COMPETITIVE_CALLen", "en", "15123COMPETITIVE_CALL"),
        ("457Networks1716940800000", "en", "457Networks1716940800000"),
        ("457Garden", "en", "457Garden"),
        ("en", "en", "en"),
    ],
)
def test_only_a_language_is_folded_away(reference, language, key):
    assert key_of(parse({**a_row(language=[language]), "reference": reference})) == key


def test_a_cascade_call_without_metadata_is_read_from_the_result():
    row = {
        "reference": "9COMPETITIVE_CALLen",
        "url": f"{PAGES_URL}/portal/screen/opportunities/competitive-calls-cs/4711",
        "type": "8",
        "status": "31094502",
        "callTitle": "Small boats",
        "deadlineDate": "2027-01-10T17:00:00.000+0000",
    }

    found = parse(row)

    assert (found.title, found.type, found.status) == ("Small boats", "cascade", "open")
    assert found.url.endswith("/competitive-calls-cs/4711")


@pytest.mark.parametrize("empty", [[], [""], None])
def test_missing_values_come_in_three_kinds(empty):
    found = parse(
        a_row(typesOfAction=empty, startDate=empty, deadlineModel=empty, keywords=empty, budgetOverview=empty)
    )

    assert (found.action_type, found.opening, found.stage, found.keywords, found.budget_eur) == (
        None,
        None,
        None,
        (),
        None,
    )


@pytest.mark.parametrize(
    ("metadata", "lacks"),
    [({"status": ["99"]}, "status"), ({"type": ["77"]}, "type"), ({"title": [""]}, "title")],
)
def test_a_result_that_cannot_be_used_says_why(metadata, lacks):
    row = a_row(**metadata)
    row["summary"] = None
    with pytest.raises(BadInput, match=lacks):
        parse(row)


def test_control_characters_are_dropped():
    found = parse({**a_row(title=["A\0 call\x07"], descriptionByte=["<p>x\0y</p>"]), "reference": "5\0TOPICSen"})

    assert (found.title, found.description, key_of(found)) == ("A call", "Xy", "5TOPICS")


def test_a_double_blank_is_one():
    assert parse(a_row(typesOfAction=["HORIZON  Research"])).action_type == "HORIZON Research"


def test_only_the_topics_own_budget_counts():
    lines = [{"action": f"LIFE-2027-0{n} - X", "budgetYearMap": {"2027": "5000000", "2028": "1"}} for n in (1, 2)]
    overview = json.dumps({"budgetTopicActionMap": {"1": lines}})

    assert parse(a_row(budgetOverview=[overview])).budget_eur == 5_000_001


@pytest.mark.parametrize(
    "overview", ["{", "[]", '{"budgetTopicActionMap": {"1": [3]}}', '{"budgetTopicActionMap": []}']
)
def test_an_unreadable_budget_is_no_budget(overview):
    assert parse(a_row(budgetOverview=[overview])).budget_eur is None


def test_keywords_hidden_in_one_string_are_found():
    assert parse(a_row(keywords=['["rivers", "fish"]', "mud"], tags=["fish"])).keywords == ("rivers", "fish", "mud")


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-09-15T00:00:00.000+0000", "2026-09-15T00:00:00Z"),
        ("2024-05-28T22:00:00.000+0200", "2024-05-28T20:00:00Z"),
        ("2027-09-21", "2027-09-21T00:00:00Z"),
        ("2026-09-04T00:00:00.000+0200", "2026-09-04T00:00:00Z"),
        ("2026-09-03T22:00:00.000+0000", "2026-09-04T00:00:00Z"),
        ("2024-11-26T23:00:00.000+0000", "2024-11-27T00:00:00Z"),
        ("2026-09-03T23:00:00.000+0000", "2026-09-03T23:00:00Z"),
        ("soon", None),
        ("", None),
        ("0001-01-01T00:00:00+0100", None),
        ("0001-01-01T00:00:00+0000", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:30:00+0000", None),
    ],
)
def test_times_are_read_or_left_out(text, time):
    assert parse_time(text) == time


@pytest.mark.parametrize(
    ("status", "deadlines", "judgment"),
    [
        ("open", ("2026-08-22T17:00:00Z",), "open"),
        ("open", ("2026-08-22T00:00:00Z",), "open"),
        ("open", ("2026-08-21T00:00:00Z",), "closed"),
        ("open", ("2026-08-21T17:00:00Z", "2027-01-01T00:00:00Z"), "open"),
        ("open", (), "open"),
        ("forthcoming", (), "forthcoming"),
        ("forthcoming", ("2020-01-01T00:00:00Z",), "closed"),
        ("closed", ("2027-01-01T00:00:00Z",), "closed"),
    ],
)
def test_status_is_judged_by_the_clock(status, deadlines, judgment):
    assert judged(status, deadlines, HARVEST) == judgment


def test_a_day_and_its_hour_are_the_same_deadline():
    assert same_deadlines(["2027-01-10T00:00:00Z"], ["2027-01-10T16:00:00Z"])
    assert not same_deadlines(["2027-01-10T12:00:00Z"], ["2027-01-10T16:00:00Z"])
    assert not same_deadlines(["2027-01-10T00:00:00Z"], [])


def test_dates_are_spoken_with_their_hour_only_where_stated():
    assert spoken_date("2027-01-05T00:00:00Z") == "5 January 2027"
    assert spoken_date("2027-01-05T15:00:00Z") == "5 January 2027, 16:00 Brussels time"
    assert spoken_date("2026-09-03T22:30:00Z") == "4 September 2026, 00:30 Brussels time"


def test_midnight_in_brussels_is_a_day_there():
    assert spoken_date("2026-09-03T22:00:00Z") == "4 September 2026"
    assert same_deadlines(["2026-09-03T22:00:00Z"], ["2026-09-04T00:00:00Z"])
    assert not same_deadlines(["2026-09-03T22:00:00Z"], ["2026-09-03T00:00:00Z"])


@pytest.mark.parametrize("day", ["2026-07-01", "2026-12-01"])
@pytest.mark.parametrize("hour", ["17:00", "23:59"])
def test_the_legal_hour_is_spoken_as_the_portal_writes_it(day, hour):
    assert (spoken_date(f"{day}T{hour}:00Z") or "").endswith(f" 2026, {hour} Brussels time")
    assert (spoken_date(f"{day}T{hour}:00Z") or "").startswith("1 ")


def test_a_day_ends_when_it_ends_in_brussels():
    end = int(datetime(2026, 8, 22, 22, tzinfo=UTC).timestamp() * 1000)

    assert judged("open", ("2026-08-22T00:00:00Z",), end - 1) == "open"
    assert judged("open", ("2026-08-22T00:00:00Z",), end) == "closed"


def test_markup_becomes_lines_of_text():
    markup = '<p class="x">One &amp; two&nbsp;three</p><ul><li><span></span>four [12]</li><li>- five</li></ul>'

    assert plain_text(f"{markup}<script>evil()</script>") == "One & two three\nFour\nFive"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"results": 3, "totalResults": 1}', b'{"results": []}', b"\xff", b"[" * 100_000]
)
def test_an_answer_that_is_none_is_trouble_that_may_pass(body):
    with pytest.raises(Transient):
        parse_answer(body)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=30)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
FIELDS = [
    "identifier", "title", "type", "status", "language", "frameworkProgramme", "startDate", "deadlineDate",
    "deadlineModel", "typesOfAction", "callTitle", "caName", "budgetOverview", "budget", "keywords", "tags",
    "descriptionByte", "description", "DATASOURCE", "esDA_FirstIngestDate", "url", "REFERENCE",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.fixed_dictionaries({"url": JSON, "summary": JSON}), JSON)
def test_whatever_the_portal_sends_is_read_or_refused(metadata, outer, reference):
    row = a_row(**metadata) | outer | {"reference": reference}
    try:
        found = parse(row)
    except BadInput:
        return

    assert found.title
    assert 0 < len(key_of(found)) <= 300
    assert "\0" not in key_of(found) + found.title + found.description + found.identifier
    assert msgspec.json.decode(msgspec.json.encode(found), type=Opportunity) == found


@given(st.text(max_size=300))
def test_any_page_is_read_as_a_listing(page):
    assert isinstance(parse_opportunities(page, now_ms=HARVEST), list)


def test_a_rendered_listing_is_read(samples):
    page = (samples / "eu_funding" / "synthetic_portal_listing_rendered.html").read_text()

    topic, cascade = parse_opportunities(page, now_ms=HARVEST)

    assert topic.identifier == "HORIZON-CL5-2026-09-D4-03"
    assert topic.title.startswith("Advanced data platforms")
    assert (topic.status, topic.stage, topic.type) == ("open", "single-stage", "grant")
    assert (topic.opening, topic.deadlines) == ("2026-05-05T00:00:00Z", ("2026-09-15T00:00:00Z",))
    assert (topic.programme, topic.programme_name) == ("HORIZON", "Horizon Europe")
    assert topic.action_type == "HORIZON-IA HORIZON Innovation Actions"
    assert topic.url == f"{PAGES_URL}/portal/screen/opportunities/topic-details/HORIZON-CL5-2026-09-D4-03"
    assert (cascade.title, cascade.type, cascade.stage) == ("METU Internships Offer", "cascade", "multiple cut-off")
    assert cascade.deadlines == ("2026-09-02T00:00:00Z",)


def test_an_unrendered_shell_shows_nothing(samples):
    page = (samples / "eu_funding" / "synthetic_portal_listing_shell.html").read_text()

    assert parse_opportunities(page, now_ms=HARVEST) == []
