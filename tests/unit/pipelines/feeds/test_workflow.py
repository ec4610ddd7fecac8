"""An entry is read in full where that helps, summarized, shown and announced once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.pipelines.feeds.sites import HOUR_MS, NOW_MS, a_site, open_sites

from tidings.discover.feed import FeedEntry
from tidings.model.errors import Permanent, Transient
from tidings.model.pipeline import Run
from tidings.model.source_definition import SourceDefinition
from tidings.pipelines import feeds
from tidings.pipelines.feeds.body import EntryBody, entry_finding, entry_key
from tidings.pipelines.feeds.cards import present
from tidings.pipelines.feeds.notices import announce
from tidings.pipelines.feeds.processors import fetch, summarize, use_feed_text
from tidings.pipelines.feeds.processors import publish as publish_step
from tidings.pipelines.feeds.workflow import entry_workflow

publish: Any = publish_step
DEFINED = SourceDefinition(address="https://a.example/feed")
BODY = EntryBody(
    feed="lamp",
    feed_title="The Lampkeeper's Log",
    id="entry-3",
    title="Entry number 3",
    feed_text="What the keeper saw.",
    published_ms=NOW_MS - HOUR_MS,
    found_at=NOW_MS,
)


def replace(**changes):
    return msgspec.structs.replace(BODY, **changes)


async def processed(sites, body, accepted=None):
    fetched: Any = await fetch(sites.work(body, accepted), sites.kit)
    summarized: Any = await summarize(sites.work(fetched.body, accepted), sites.kit)
    return publish(sites.work(summarized.body, accepted)).body


async def test_the_page_behind_an_entry_is_read_and_summarized():
    async with open_sites(a_site()) as sites:
        body = await processed(sites, replace(url=f"{sites.url}/lamp.example/log/3"))

    assert body.text_from == "page"
    assert "letter from the weather" in body.text
    assert "Written between watches" not in body.text
    assert body.summary
    assert len(body.summary.split()) <= 80


async def test_a_feed_that_tells_everything_needs_no_page():
    async with open_sites(a_site()) as sites:
        long = await processed(
            sites, replace(url=f"{sites.url}/lamp.example/log/3", feed_text="The sea is wide. " * 200)
        )
        unwanted = await processed(sites, replace(url=f"{sites.url}/lamp.example/log/3", full_text=False))
        nowhere = await processed(sites, replace(url=None))

    assert sites.world.asked == []
    assert {long.text_from, unwanted.text_from, nowhere.text_from} == {"feed"}
    assert unwanted.summary == "What the keeper saw."


async def test_a_page_that_says_less_than_the_feed_changes_nothing():
    async with open_sites(a_site()) as sites:
        sites.world.instead["/thin"] = ("text/html", b"<html><body><p>Hi.</p></body></html>")
        body = await processed(sites, replace(url=f"{sites.url}/thin"))

    assert (body.text, body.text_from) == ("What the keeper saw.", "feed")


async def test_a_page_that_cannot_be_had_leaves_the_feeds_words():
    async with open_sites(a_site()) as sites:
        with pytest.raises(Permanent, match="404"):
            await fetch(sites.work(replace(url=f"{sites.url}/lamp.example/nowhere")), sites.kit)
        sites.world.gone["/busy"] = 503
        with pytest.raises(Transient, match="503"):
            await fetch(sites.work(replace(url=f"{sites.url}/busy")), sites.kit)
        work = sites.work(replace(url=f"{sites.url}/busy"))
        work.error = "it answered 503"
        outcome: Any = use_feed_text(work)

    assert outcome.body.text == "What the keeper saw."
    assert outcome.body.page_error == "it answered 503"
    assert entry_workflow().named("fetch").retry.exhausted == "use_feed_text"


CONSENT = b"""<html><head><title>We value your privacy</title></head><body><p>We and our 842 partners store and/or
access information on a device. You can withdraw your consent at any time.</p><p>Accept all</p></body></html>"""


async def test_a_page_that_is_no_article_leaves_the_feeds_words_and_is_tried_again():
    async with open_sites(a_site()) as sites:
        sites.world.instead["/walled"] = ("text/html", CONSENT)
        body = replace(url=f"{sites.url}/walled")
        fetched: Any = await fetch(sites.work(body), sites.kit)
        first = publish(sites.work(fetched.body))
        tries = [first.due_at]
        for _ in range(3):
            fetched = await fetch(sites.work(fetched.body, fetched.body), sites.kit)
            tries.append(publish(sites.work(fetched.body)).due_at)
        del sites.world.instead["/walled"]
        sites.world.instead["/walled"] = (
            "text/html",
            f"<html><body><p>{'It rains again. ' * 30}</p></body></html>".encode(),
        )
        read: Any = await fetch(sites.work(first.body, first.body), sites.kit)

    assert (first.body.text, first.body.text_from) == ("What the keeper saw.", "feed")
    assert present("k", first.body).card.page_error == "the page shows a consent page"
    assert [at and (at - NOW_MS) // HOUR_MS for at in tries] == [6, 24, 72, None]
    assert (read.body.text_from, read.body.page_error) == ("page", None)


async def test_what_every_page_of_a_host_shows_is_no_article():
    async with open_sites(a_site()) as sites:
        shell = f"<html><body><p>{'The harbour has many boats and few sailors today. ' * 8}</p></body></html>".encode()
        sites.world.instead |= {f"/shell/{n}": ("text/html", shell) for n in (1, 2)}
        one: Any = await fetch(sites.work(replace(url=f"{sites.url}/shell/1")), sites.kit)
        again: Any = await fetch(sites.work(replace(url=f"{sites.url}/shell/1")), sites.kit)
        other: Any = await fetch(sites.work(replace(url=f"{sites.url}/shell/2")), sites.kit)
        same: Any = await fetch(sites.work(replace(url=f"{sites.url}/shell/2", title="Many boats")), sites.kit)

    assert [each.body.text_from for each in (one, again, other, same)] == ["page", "page", "feed", "page"]
    assert other.body.page_error == "the page shows what other pages of its host show too"


async def test_an_entry_of_a_title_only_is_shown():
    async with open_sites(a_site()) as sites:
        body = await processed(sites, replace(feed_text="", url=None))

    assert body.summary == "Entry number 3"


def test_the_card_says_whether_the_date_was_given():
    dated = present("lamp/1", BODY)
    undated = present("lamp/1", replace(published_ms=None))
    future = present("lamp/1", replace(published_ms=NOW_MS + 50 * HOUR_MS))

    assert (dated.card.published_at, dated.card.date_given) == ("2027-01-15T07:00:00.000Z", True)
    assert (undated.card.published_at, undated.card.date_given) == ("2027-01-15T08:00:00.000Z", False)
    assert future.sort == NOW_MS
    assert dated.document is not None
    assert dated.document().attributes["feed"] == "lamp"


async def test_an_entry_is_announced_once_and_only_while_it_is_news():
    async with open_sites(a_site()) as sites:
        first = await processed(sites, BODY)
        sites.clock.advance(seconds=60)
        changed = await processed(sites, replace(title="A better title"), first)
        old = await processed(sites, replace(published_ms=NOW_MS - 100 * HOUR_MS))
        told = [announce(sites.work(body)) for body in (first, changed, old)]

    assert [notice.title for notice in told[0]] == ["Entry number 3"]
    attributes: dict[str, object] = {
        "feed": "lamp",
        "tag": [],
        "label": [],
        "category": None,
        "language": None,
        "author": None,
        "type": "entry",
        "by": None,
    }
    assert told[0][0].attributes == attributes
    assert told[1] == told[2] == ()
    assert changed.found_at == first.found_at


def test_what_counts_as_a_change():
    def mark(**changes):
        fields: dict[str, Any] = {"id": "1", "url": "https://a.example/1", "title": "T", "summary_text": "S"} | changes
        return entry_finding("a", "A", FeedEntry(**fields), DEFINED, run=Run("feeds.a", NOW_MS)).fingerprint

    same = mark()
    assert mark(published_ms=1) == mark(author="X") == mark(categories=("c",)) == same
    assert len({same, mark(title="U"), mark(url="https://a.example/2"), mark(summary_text="R")}) == 4
    assert mark(content_html="<p>Much longer words than the summary</p>") != same


def test_an_entry_without_a_title_gets_one():
    finding = entry_finding(
        "a", "A", FeedEntry("1", None, "", summary_text="Words " * 50), DEFINED, run=Run("feeds.a", NOW_MS)
    )
    body = msgspec.json.decode(finding.payload, type=EntryBody)

    assert body.title.startswith("Words Words")
    assert len(body.title) <= 120


def test_keys_are_short_whatever_the_id():
    assert entry_key("a", "x" * 10_000) != entry_key("a", "x" * 9_999)
    assert len(entry_key("a", "\ud800 odd \0")) == len("a/") + 16


@pytest.mark.parametrize(
    "settings",
    [
        {"feeds": ["ftp://a.example/feed"]},
        {"feeds": ["a.example"]},
        {"feeds": [{"url": "https://a.example/feed", "nmae": "x"}]},
        {"feeds": ["https://a.example/feed", "https://A.example/feed#top"]},
        {"feeds": [{"url": "https://a.example/feed", "interval": "soon"}]},
        {"feeds": [{"url": "https://a.example/feed", "interval": 1}]},
        {"min_interval": "2h", "max_interval": "1h"},
        {"keep_days": 0},
        {"fedes": []},
    ],
)
def test_senseless_settings_are_refused(settings):
    with pytest.raises(ValueError):
        feeds.Settings(**settings)


def test_sources_are_named_after_their_feeds():
    listed: list[Any] = [
        {"url": "https://a.example/feed", "name": "Über Café"},
        "https://www.b.example/one.xml",
        "https://www.b.example/two.xml",
        {"url": "https://c.example/feed", "name": "日本", "interval": "30 min"},
    ]
    settings = feeds.Settings(feeds=listed)
    pipeline = feeds.build(settings)

    names = [source.name for source in pipeline.sources]
    assert names[:2] == ["feeds.uber-cafe", "feeds.b-example"]
    assert names[2].startswith("feeds.b-example-")
    assert names[3] == "feeds.c-example"
    assert [source.schedule.every_seconds for source in pipeline.sources] == [3600, 3600, 3600, 1800]
    assert feeds.advice(settings) == []
    assert feeds.advice(feeds.Settings())
    assert feeds.endpoints(settings) == ()
