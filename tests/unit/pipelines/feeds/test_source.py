"""A feed is found, read, and asked again only when that makes sense."""

from __future__ import annotations

import json

import pytest
from tests.unit.pipelines.feeds.sites import HOUR_MS, NOW_MS, a_site, open_sites

from tidings.model.errors import Misconfigured, Permanent, SlowDown, Transient
from tidings.model.pipeline import Page
from tidings.sample.feeds import SampleEntry


def bodies(page):
    return [json.loads(finding.payload) for finding in page.findings]


@pytest.mark.parametrize("form", ["atom", "rss", "json"])
async def test_every_format_gives_the_same_entries(form):
    async with open_sites(a_site(format=form)) as sites:
        page = await sites.look(sites.source())

    assert [body["title"] for body in bodies(page)] == ["Entry number 3", "Entry number 2", "Entry number 1"]
    assert bodies(page)[0]["url"] == f"{sites.url}/lamp.example/log/3"
    assert bodies(page)[0]["feed_title"] == "The Lampkeeper's Log"
    assert bodies(page)[0]["published_ms"] == NOW_MS
    assert len({finding.key for finding in page.findings}) == 3


async def test_an_unchanged_feed_costs_a_conditional_request_and_finds_nothing():
    async with open_sites(a_site()) as sites:
        source = sites.source()
        first = await sites.look(source)
        second = await sites.look(source, first)
        asked = sites.world.asked

    assert [(each.conditional, each.status) for each in asked] == [(False, 200), (True, 304)]
    assert second.findings == ()
    assert second.note == "not changed"
    assert second.next_check_seconds == first.next_check_seconds == HOUR_MS / 1000


async def test_a_copy_that_was_fetched_but_never_committed_is_read():
    async with open_sites(a_site()) as sites:
        source = sites.source()
        await sites.look(source)
        again = await sites.look(source)

    assert sites.world.asked[1].status == 304
    assert len(again.findings) == 3


async def test_a_new_entry_is_found_and_the_rest_stays_the_same():
    async with open_sites(a_site()) as sites:
        source = sites.source()
        first = await sites.look(source)
        sites.world.feeds["lamp.example"].entries.append(SampleEntry("entry-4", "/log/4", "Entry number 4", NOW_MS))
        second = await sites.look(source, first)

    old = {finding.key: finding.fingerprint for finding in first.findings}
    new = {finding.key: finding.fingerprint for finding in second.findings}
    assert old.items() <= new.items()
    assert len(new) == 4


async def test_a_site_announces_its_feed():
    async with open_sites(a_site()) as sites:
        source = sites.source("/lamp.example/")
        first = await sites.look(source)
        second = await sites.look(source, first)

    assert len(first.findings) == 3
    assert "announces" in str(first.note)
    assert [each.path for each in sites.world.asked] == ["/lamp.example/", "/lamp.example/feed", "/lamp.example/feed"]
    assert second.note == "not changed"


async def test_an_announced_feed_that_is_gone_is_looked_for_again():
    async with open_sites(a_site()) as sites:
        source = sites.source("/lamp.example/")
        first = await sites.look(source)
        sites.world.gone["/lamp.example/feed"] = 410
        sites.world.feeds["lamp.example"].feed_path = "/new-feed"
        second = await sites.look(source, first)

    assert second.cursor["url"] == f"{sites.url}/lamp.example/new-feed"
    assert len(second.findings) == 3


async def test_a_page_that_announces_nothing_is_no_feed():
    async with open_sites(a_site()) as sites:
        sites.world.instead["/lamp.example/"] = ("text/html", b"<!doctype html><html><body>Hello</body></html>")
        with pytest.raises(Transient, match="HTML page, not a feed"):
            await sites.look(sites.source("/lamp.example/"))


async def test_a_block_page_is_not_followed():
    async with open_sites(a_site(), a_site("other.example")) as sites:
        source = sites.source()
        first = await sites.look(source)
        link = f'<link rel="alternate" type="application/rss+xml" href="{sites.url}/other.example/feed">'
        blocked = f"<!doctype html><html><head>{link}</head><body>Are you a robot?</body></html>"
        sites.world.instead["/lamp.example/feed"] = ("text/html", blocked.encode())
        with pytest.raises(Transient, match="HTML page"):
            await sites.look(source, first)

    assert not any("other" in each.path for each in sites.world.asked)


@pytest.mark.parametrize(("status", "is_kept"), [(301, True), (308, True), (302, False), (307, False)])
async def test_a_permanent_move_is_remembered_and_a_temporary_one_is_not(status, is_kept):
    async with open_sites(a_site()) as sites:
        source = sites.source("/old/feed")
        sites.world.moved["/old/feed"] = (status, "/lamp.example/feed")
        first = await sites.look(source)
        asked = len(sites.world.asked)
        second = await sites.look(source, first)

    assert len(first.findings) == 3
    assert ("moved to" in str(first.note)) == is_kept
    assert (sites.world.asked[asked].path == "/lamp.example/feed") == is_kept
    assert second.findings == ()


async def test_another_address_in_the_settings_ends_what_was_learned():
    async with open_sites(a_site(), a_site("other.example")) as sites:
        first = await sites.look(sites.source())
        await sites.look(sites.source("/other.example/feed"), first)

    assert sites.world.asked[-1].path == "/other.example/feed"


async def test_a_feed_that_is_gone_for_good_needs_a_person():
    async with open_sites(a_site()) as sites:
        sites.world.gone["/lamp.example/feed"] = 410
        with pytest.raises(Misconfigured, match=r"gone for good; remove it from feeds\.feeds"):
            await sites.look(sites.source())


async def test_a_feed_that_is_gone_is_remembered_as_such_until_its_address_changes():
    async with open_sites(a_site()) as sites:
        sites.world.gone["/lamp.example/feed"] = 410
        pages: list[Page] = []
        with pytest.raises(Misconfigured):
            await sites.collect(sites.source(), pages)
        requests = len(sites.world.asked)
        with pytest.raises(Misconfigured, match=r"gone for good; remove it from feeds\.feeds"):
            await sites.look(sites.source(), pages[-1])
        assert len(sites.world.asked) == requests
        sites.world.gone.clear()
        back = await sites.look(sites.source("/lamp.example/feed#back"), pages[-1])

    assert len(back.findings) == 3


async def test_other_refusals_keep_their_kind():
    async with open_sites(a_site()) as sites:
        sites.world.gone["/lamp.example/feed"] = 404
        with pytest.raises(Permanent, match="404"):
            await sites.look(sites.source())
        sites.world.gone["/lamp.example/feed"] = 503
        with pytest.raises(Transient, match="503"):
            await sites.look(sites.source())
        sites.world.gone["/lamp.example/feed"] = 429
        with pytest.raises(SlowDown):
            await sites.look(sites.source())


async def test_robots_are_asked_first():
    async with open_sites(a_site(), obey_robots=True) as sites:
        sites.world.robots = "User-agent: *\nDisallow: /lamp.example/"
        with pytest.raises(Permanent, match=r"robots\.txt"):
            await sites.look(sites.source())

    assert [each.path for each in sites.world.asked] == ["/robots.txt"]


async def test_entries_without_words_are_rejected():
    async with open_sites(a_site(count=1, format="rss")) as sites:
        sites.world.feeds["lamp.example"].entries.append(SampleEntry("silent", "/silent", "", NOW_MS))
        page = await sites.look(sites.source())

    assert [body["title"] for body in bodies(page)] == ["Entry number 1"]
    assert [each.reason for each in page.rejected] == ["entry silent has no words"]


async def test_the_same_id_in_two_feeds_is_two_entries():
    async with open_sites(a_site(count=1), a_site("other.example", count=1)) as sites:
        one = await sites.look(sites.source("/lamp.example/feed", name="One"))
        other = await sites.look(sites.source("/other.example/feed", name="Other"))

    assert one.findings[0].key.startswith("one/")
    assert other.findings[0].key.startswith("other/")


async def test_a_nonsense_cursor_or_mark_is_forgotten():
    async with open_sites(a_site()) as sites:
        source = sites.source()
        first = await sites.look(source)
        for cursor, mark in ((7, "x"), ({"url": 7}, {"digest": []}), ("", None)):
            page = await sites.look(source, type(first)((), cursor=cursor, mark=mark))
            assert len(page.findings) == 3
