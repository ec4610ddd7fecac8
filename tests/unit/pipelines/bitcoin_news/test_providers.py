"""What the three kinds of sources make of recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.clock import ManualClock

from tidings.discover.feed import parse_feed
from tidings.model.clock import read_time
from tidings.model.errors import BadInput, Misconfigured, SlowDown, TidingsError, Transient
from tidings.model.web import Response
from tidings.pipelines.bitcoin_news import source_apitube as apitube
from tidings.pipelines.bitcoin_news import source_newsdata as newsdata
from tidings.pipelines.bitcoin_news import source_rss as rss
from tidings.pipelines.bitcoin_news.client import read_all

NOW = 1_789_000_000_000
CLOCK = ManualClock(NOW)
UNTIL_TOMORROW = (86_400_000 - NOW % 86_400_000) / 1000


def recorded(samples: Path, name: str) -> Any:
    return json.loads((samples / "news" / name).read_text())


def answer(case: dict[str, Any]) -> Response:
    body = case["body"]
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Response(
        case["status"], "https://api.example/", {k.lower(): v for k, v in case.get("headers", {}).items()}, raw
    )


def test_a_free_plan_record_holds_no_advertisement(samples: Path):
    for page in (1, 2, 3):
        for record in recorded(samples, f"synthetic_newsdata_crypto_page{page}.json")["results"]:
            sighting = newsdata.sighting(record, NOW)
            assert "ONLY AVAILABLE" not in str(sighting)
            assert sighting.sentiment is None
            assert sighting.language == "en"
            assert sighting.published_ms is not None


def test_a_newsdata_record_is_read(samples: Path):
    record = recorded(samples, "synthetic_newsdata_crypto_page1.json")["results"][0]
    sighting = newsdata.sighting(record, NOW)
    assert sighting.provider_id == "541256ba250db0f7455b2fe4d3a4cf91"
    assert sighting.published_ms == 1_654_809_720_000
    assert sighting.source == "Crypto Potato"
    assert sighting.author == "Synthetic Author"
    assert sighting.categories == ("bitcoin", "markets")


def test_a_paid_plan_keeps_its_sentiment(samples: Path):
    records = recorded(samples, "synthetic_newsdata_crypto_paid_plan.json")["results"]
    sightings, rejected = read_all(records, lambda r: newsdata.sighting(r, NOW))
    assert rejected == ()
    assert (sightings[0].sentiment, sightings[0].sentiment_score) == ("positive", 0.649)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-01-02 03:04:05", "UTC", 1_767_323_045_000),
        ("2026-01-02 04:04:05", "Europe/Berlin", 1_767_323_045_000),
        ("2026-01-02 03:04:05", "Nowhere/Land", 1_767_323_045_000),
        ("2026-01-02 03:04:05", "../../etc/passwd", 1_767_323_045_000),
        ("yesterday", "UTC", None),
        (None, None, None),
    ],
)
def test_newsdata_dates_find_their_zone(text, zone, expected):
    assert read_time(text, newsdata.zone_of(zone)) == expected


def test_an_apitube_record_is_read(samples: Path):
    sightings, rejected = read_all(
        recorded(samples, "synthetic_apitube_everything_page1.json")["results"], lambda r: apitube.sighting(r, NOW)
    )
    assert rejected == ()
    first = sightings[0]
    assert first.provider_id == "3072206000"
    assert (first.sentiment, first.sentiment_score) == ("negative", -0.1)
    assert first.author is None
    assert first.image is None
    assert first.published_ms == 1_654_780_260_000
    assert all("Upgrade subscription" not in str(s) for s in sightings)


@pytest.mark.parametrize("read", [newsdata.sighting, apitube.sighting])
@pytest.mark.parametrize("record", [None, [], "x", {}, {"link": "ftp://x/", "href": "mailto:x", "title": "T"}])
def test_a_record_that_is_no_article_is_refused(read, record):
    with pytest.raises(BadInput):
        read(record, NOW)


def test_one_bad_record_harms_no_other(samples: Path):
    records = recorded(samples, "synthetic_newsdata_crypto_page1.json")["results"]
    sightings, rejected = read_all([records[0], {"title": "x"}, records[1]], lambda r: newsdata.sighting(r, NOW))
    assert len(sightings) == 2
    assert [r.line for r in rejected] == [2]


NEWSDATA_ERRORS = {
    "invalid_key": Misconfigured,
    "missing_key": Misconfigured,
    "size_over_plan": Misconfigured,
    "two_query_params": Misconfigured,
    "bad_page_token": Transient,
    "rate_limited_documented_form": SlowDown,
    "rate_limited_results_form": SlowDown,
    "daily_credits_spent": SlowDown,
    "server_error": Transient,
}
APITUBE_ERRORS = {
    "over_page_size": Misconfigured,
    "key_missing": Misconfigured,
    "key_invalid": Misconfigured,
    "key_expired": Misconfigured,
    "no_points": SlowDown,
    "unknown_topic": Misconfigured,
    "title_window_too_wide": Misconfigured,
    "rate_limited": SlowDown,
    "wrong_path": Misconfigured,
    "server_error": Transient,
    "empty_body_on_unencoded_query": Transient,
    "page_beyond_free_plan": Misconfigured,
}


@pytest.mark.parametrize(("name", "error"), NEWSDATA_ERRORS.items())
def test_newsdata_errors_say_what_to_do(samples: Path, name: str, error: type[TidingsError]):
    (case,) = [c for c in recorded(samples, "synthetic_newsdata_errors.json") if c["name"] == name]
    with pytest.raises(error) as raised:
        newsdata.check(answer(case), CLOCK)
    assert type(raised.value) is error


def test_every_recorded_newsdata_error_is_covered(samples: Path):
    names = {c["name"] for c in recorded(samples, "synthetic_newsdata_errors.json")}
    assert names == {*NEWSDATA_ERRORS, "success_without_results"}


def test_spent_credits_wait_for_tomorrow_and_a_full_window_for_a_quarter_of_an_hour(samples: Path):
    waits = {}
    for case in recorded(samples, "synthetic_newsdata_errors.json"):
        if case["status"] == 429:
            with pytest.raises(SlowDown) as raised:
                newsdata.check(answer(case), CLOCK)
            waits[case["name"]] = raised.value.retry_after_seconds
    assert waits == {
        "rate_limited_documented_form": 900,
        "rate_limited_results_form": 900,
        "daily_credits_spent": UNTIL_TOMORROW,
    }


@pytest.mark.parametrize(("name", "error"), APITUBE_ERRORS.items())
def test_apitube_errors_say_what_to_do(samples: Path, name: str, error: type[TidingsError]):
    (case,) = [c for c in recorded(samples, "synthetic_apitube_errors.json") if c["name"] == name]
    with pytest.raises(error) as raised:
        apitube.check(answer(case), 1, CLOCK)
    assert type(raised.value) is error


def test_every_recorded_apitube_error_is_covered(samples: Path):
    assert {c["name"] for c in recorded(samples, "synthetic_apitube_errors.json")} == set(APITUBE_ERRORS)


def test_apitube_waits_as_long_as_its_header_says(samples: Path):
    cases = {c["name"]: c for c in recorded(samples, "synthetic_apitube_errors.json")}
    with pytest.raises(SlowDown) as raised:
        apitube.check(answer(cases["rate_limited"]), 1, CLOCK)
    assert raised.value.retry_after_seconds == 37
    with pytest.raises(SlowDown) as raised:
        apitube.check(answer(cases["no_points"]), 1, CLOCK)
    assert raised.value.retry_after_seconds == UNTIL_TOMORROW


def test_a_page_beyond_the_plan_ends_the_run_in_peace(samples: Path):
    (case,) = [c for c in recorded(samples, "synthetic_apitube_errors.json") if c["name"] == "page_beyond_free_plan"]
    with pytest.raises(apitube.BeyondPlan):
        apitube.check(answer(case), 6, CLOCK)


@pytest.mark.parametrize("status", [200, 403, 502])
@pytest.mark.parametrize("check", [newsdata.check, lambda r, c: apitube.check(r, 1, c)])
def test_html_from_a_provider_is_trouble_that_passes(status: int, check):
    page = Response(status, "https://api.example/", {"content-type": "text/html"}, b"<html>Just a moment...</html>")
    with pytest.raises((Transient, Misconfigured)) as raised:
        check(page, CLOCK)
    assert "Just a moment" not in str(raised.value)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 100_000, b'{"status":"success"'])
def test_broken_json_is_trouble_that_passes(body: bytes):
    with pytest.raises(Transient):
        newsdata.check(Response(200, "https://api.example/", {}, body), CLOCK)


def test_an_answer_to_another_question_is_refused(samples: Path):
    page = recorded(samples, "synthetic_apitube_everything_page1.json")
    apitube.check_echo(page, {"title": "bitcoin", "language.code": "en"})
    with pytest.raises(Misconfigured, match="ignored"):
        apitube.check_echo(
            page | {"path": "http://api.apitube.io/v1/news/everything?titel=bitcoin"}, {"title": "bitcoin"}
        )


@pytest.mark.parametrize(
    ("file", "outlet", "count"),
    [
        ("synthetic_coindesk_rss.xml", "CoinDesk", 12),
        ("synthetic_cointelegraph_rss.xml", "Cointelegraph", 12),
        ("synthetic_atom.xml", "Synthetic Crypto Atom", 12),
        ("synthetic_rss_edge_cases.xml", "Edge cases", 11),
    ],
)
def test_recorded_feeds_become_sightings(samples: Path, file: str, outlet: str, count: int):
    feed = parse_feed((samples / "news" / file).read_bytes(), None, "https://example.org/feed")
    assert rss.outlet_name(feed) == outlet
    sightings, rejected = read_all(feed.entries, lambda e: rss.sighting(e, outlet, NOW, "list"))
    assert len(sightings) == count
    assert len(sightings) + len(rejected) == 12
    assert all(s.title and s.link.startswith("https://") for s in sightings)


def test_an_entry_without_a_title_is_named_by_its_first_words(samples: Path):
    feed = parse_feed((samples / "news/synthetic_rss_edge_cases.xml").read_bytes(), None, "https://example.org/feed")
    sightings, rejected = read_all(feed.entries, lambda e: rss.sighting(e, "Edge", NOW, "list"))
    assert "No title at all" in [s.title for s in sightings]
    assert "web address" in rejected[0].reason


def test_feeds_of_one_host_are_told_apart_by_their_paths():
    urls = [
        "https://www.a.example/rss",
        "https://b.example/rss/tag/x",
        "https://b.example/rss?y=1",
        "https://c.example/",
    ]
    assert rss.source_names(urls) == [
        "bitcoin_news.rss.a.example",
        "bitcoin_news.rss.b.example-rss-tag-x",
        "bitcoin_news.rss.b.example-rss-y-1",
        "bitcoin_news.rss.c.example",
    ]
    same = ["https://b.example/a-b", "https://b.example/a/b", "https://b.example/a_b"]
    assert len(set(rss.source_names(same))) == 3
