"""Whatever strangers serve as a feed is read or refused with a reason; nothing crashes, nothing stalls."""

from __future__ import annotations

import time

import msgspec
import pytest
from tests.unit.pipelines.feeds.sites import a_site, open_sites
from tests.unit.pipelines.feeds.wild import corpus

from tidings.model.errors import TidingsError
from tidings.pipelines.feeds.body import TEXT_CHARS_MAX, EntryBody
from tidings.pipelines.feeds.cards import present

SECONDS_MAX = 4.0


def checked(finding):
    """Refuse a finding that could harm anyone behind it."""
    body = msgspec.json.decode(finding.payload, type=EntryBody)
    assert body.url is None or body.url.startswith(("http://", "https://"))
    assert 0 < len(body.title) <= 2_000
    assert len(body.feed_text) <= TEXT_CHARS_MAX + 1
    assert "\0" not in body.title + body.feed_text
    assert "<script" not in body.title + body.feed_text
    assert len(finding.payload) < 400_000
    shown = present(finding.key, body)
    msgspec.json.encode(shown.card)
    return body


async def look(sites, content_type, data):
    """Serve these bytes as a feed; return what was read of it, or why nothing was."""
    sites.world.instead["/wild/feed"] = (content_type, data)
    try:
        page = await sites.look(sites.source("/wild/feed"))
    except TidingsError as error:
        return str(error)
    return [checked(finding) for finding in page.findings]


async def test_the_whole_corpus_is_read_or_refused():
    read, refused, slowest = 0, 0, 0.0
    async with open_sites(a_site()) as sites:
        for name, content_type, data in corpus():
            started = time.process_time()
            outcome = await look(sites, content_type, data)
            slowest = max(slowest, time.process_time() - started)
            assert slowest < SECONDS_MAX, name
            assert isinstance(outcome, list) or 10 < len(outcome) < 600, name
            read, refused = read + isinstance(outcome, list), refused + isinstance(outcome, str)

    assert read > 400
    assert refused > 20


async def test_mislabelled_text_is_still_read():
    async with open_sites(a_site()) as sites:
        for name, content_type, data in corpus():
            if name.startswith(("utf-8 declared", "utf-16 declared", "utf-8-sig declared")):
                outcome = await look(sites, content_type, data)
                assert isinstance(outcome, list), name
                assert [body.title for body in outcome] == [f"Café {n} — naïve" for n in (2, 1, 0)], name


async def test_the_recorded_edge_cases_are_read(samples):
    async with open_sites(a_site()) as sites:
        path = samples / "news" / "synthetic_rss_edge_cases.xml"
        entries = await look(sites, "application/rss+xml", path.read_bytes())

    titles = [body.title for body in entries]
    assert len(entries) == 12
    assert "Latin-1 text: café é" in titles or any("café" in title for title in titles)
    urls = {body.title: body.url for body in entries}
    assert urls["Script link"] is None
    assert urls["No link, guid is one"] == "https://example.org/k"
    assert urls["Relative link"] is not None
    assert urls["No guid, no date"] == urls["Same link, other tracking"] == "https://example.org/a"
    dated = {body.title: body.published_ms for body in entries}
    assert dated["Date not a date"] is None
    assert dated["ISO date in RSS"] is not None


@pytest.mark.parametrize(
    "name", ["synthetic_atom.xml", "synthetic_coindesk_rss.xml", "synthetic_cointelegraph_rss.xml"]
)
async def test_recorded_feeds_are_read(samples, name):
    async with open_sites(a_site()) as sites:
        entries = await look(sites, "application/xml", (samples / "news" / name).read_bytes())

    assert len(entries) == 12
    assert all(body.url and body.published_ms for body in entries)
