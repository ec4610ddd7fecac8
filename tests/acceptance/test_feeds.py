"""Feeds from the configuration alone, whole: discovered, read in full, summarized, searchable, told to a channel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.engine import Engine, discord_channel
from tests.support.hacker_news import SERVER
from tests.unit.serve.asgi import Client

from tidings.backends import backend_of
from tidings.model.clock import SystemClock
from tidings.model.publication import Route
from tidings.pipelines import feeds
from tidings.sample.discord import DiscordStandIn
from tidings.sample.feeds import FeedSites, SampleEntry
from tidings.sample.serving import StandIn
from tidings.serve.application import build


@dataclass
class Reader:
    """The engine, the websites it reads and the channel it tells."""

    engine: Engine
    sites: FeedSites
    discord: DiscordStandIn

    def titles(self) -> list[str]:
        return [card["title"] for card in self.engine.cards("entries")]

    def told(self) -> list[str]:
        return [message.body["embeds"][0]["title"] for message in self.discord.messages]


@asynccontextmanager
async def reading(database_url: str, query: str = "", **settings: Any) -> AsyncIterator[Reader]:
    sites = FeedSites.from_package(SystemClock().now_ms)
    discord = DiscordStandIn.from_package()
    async with StandIn(sites.app) as web, StandIn(discord.app) as channel:
        listed: list[Any] = [
            {"url": f"{web.url}/{site.host}{site.home_path}", "name": site.title, **settings}
            for site in sites.feeds.values()
        ]
        engine = Engine(
            database_url,
            [feeds.build(feeds.Settings(feeds=listed))],
            loopback=[("127.0.0.1", web.port)],
            channels=[discord_channel("news", discord.webhook_url(channel.url))],
            routes=[Route("feeds", "news", query)],
        )
        async with engine:
            yield Reader(engine, sites, discord)


async def test_feeds_are_read_from_the_configuration_alone(database_url: str) -> None:
    async with reading(database_url) as reader:
        engine, sites = reader.engine, reader.sites
        runs = await engine.discover()
        await engine.work_until_idle()

        now_ms = engine.now_ms()
        entries = [entry for site in sites.feeds.values() for entry in site.entries if entry.published_ms <= now_ms]
        assert [run.error for run in runs] == [None, None]
        assert sum(run.new for run in runs) == len(entries) > 10
        assert sorted(reader.titles()) == sorted(entry.title for entry in entries)
        assert engine.states("entry") == {"published": len(entries)}
        cards = engine.cards("entries")
        assert all(card["summary"] and card["text_from"] == "page" for card in cards)
        assert [card["published_at"] for card in cards] == sorted((c["published_at"] for c in cards), reverse=True)
        found = engine.search("feed:the-lampkeepers-log salt")
        assert any("salt" in hit.title.lower() for hit in found)

        asked = len(sites.asked)
        again = await engine.discover()
        await engine.work_until_idle()
        assert {(run.new, run.changed, run.note) for run in again} == {(0, 0, "not changed")}
        assert [(each.conditional, each.status) for each in sites.asked[asked:]] == [(True, 304)] * 2


async def test_what_is_new_is_told_to_the_channels_whose_route_matches(database_url: str) -> None:
    async with reading(database_url, query="tag:lenses") as reader:
        engine, sites = reader.engine, reader.sites
        await engine.discover()
        await engine.work_until_idle()
        before = reader.told()

        site = sites.feeds["lampkeeper.example"]
        text = ["A new lens arrived today, wrapped in straw, and nobody has touched it with bare hands so far."] * 3
        now_ms = engine.now_ms()
        site.entries.append(SampleEntry("n1", "/log/n1", "A new lens", now_ms, tags=["lenses"], paragraphs=text))
        site.entries.append(SampleEntry("n2", "/log/n2", "A new boat", now_ms, tags=["boats"], paragraphs=text))
        runs = await engine.discover()
        for _ in range(30):
            await engine.work_until_idle()
            engine.advance_clock(seconds=10)

        assert sum(run.new for run in runs) == 2
        assert set(reader.told()) - set(before) == {"A new lens"}
        assert {"A new lens", "A new boat"} <= set(reader.titles())

        site.entries[-2].summary = "It has a scratch."
        await engine.discover()
        await engine.work_until_idle()
        assert reader.told().count("A new lens") == 1, "a change is no news"


async def test_a_feed_that_is_gone_is_not_asked_again(database_url: str) -> None:
    async with reading(database_url) as reader:
        engine, sites = reader.engine, reader.sites
        site = sites.feeds["lampkeeper.example"]
        await engine.discover()
        path = f"/{site.host}{site.home_path}"
        for gone in (path, f"/{site.host}{site.feed_path}"):
            sites.gone[gone] = 410
        runs = [await engine.discover() for _ in range(3)]

        errors = [[run.error for run in each if run.error] for each in runs]
        assert all("gone for good; remove it from feeds.feeds" in error for (error,) in errors)
        assert [each.status for each in sites.asked if each.path == path and each.status == 410] == [410]
        assert sum(run.found for run in runs[-1]) == 0
        await engine.work_until_idle()
        assert any(site.title == card["feed_title"] for card in engine.cards("entries")), "what was found stays"


async def test_a_page_that_cannot_be_had_leaves_the_entry_with_the_feeds_words(database_url: str) -> None:
    async with reading(database_url) as reader:
        engine, sites = reader.engine, reader.sites
        site = sites.feeds["stacknotes.example"]
        gone, busy = site.entries[0], site.entries[1]
        sites.gone[f"/{site.host}{gone.path}"] = 404
        sites.gone[f"/{site.host}{busy.path}"] = 503
        await engine.discover()
        for _ in range(20):
            await engine.work_until_idle()
            engine.advance_clock(seconds=1800)

        cards = {card["title"]: card for card in engine.cards("entries")}
        assert cards[gone.title]["text_from"] == cards[busy.title]["text_from"] == "feed"
        assert cards[gone.title]["summary"] == gone.summary
        assert engine.store.item_views.dead_letters() == []
        assert set(engine.states("entry")) == {"published"}
        asked = [each.path for each in sites.asked]
        assert asked.count(f"/{site.host}{gone.path}") == 1
        assert asked.count(f"/{site.host}{busy.path}") == 4


async def test_feeds_are_asked_by_their_own_rhythm(database_url: str) -> None:
    async with reading(database_url, full_text=False) as reader:
        engine, sites = reader.engine, reader.sites
        await engine.discover_due()
        asked = len(sites.asked)
        for _ in range(4):
            engine.advance_clock(seconds=300)
            await engine.discover_due()
        soon = len(sites.asked) - asked
        for _ in range(25):
            engine.advance_clock(seconds=3600)
            await engine.discover_due()

        assert soon <= 2
        assert 2 <= len(sites.asked) - asked <= 52
        names = list(engine.store.source_list.current())
        assert {run.error for name in names for run in engine.store.schedules.runs(name)} == {None}


LONG = "A sentence about the harbor and its lamps that its keeper wrote in full. " * 300
FULL_FEED = f"""<rss version="2.0"><channel><title>Full</title><item><title>Whole</title><guid>g1</guid>
<link>https://full.example/1</link><description><![CDATA[<h2>Part</h2><p>{LONG}</p>
<img src="/lamp.png" alt="A lamp" onerror="alert(1)"><script>alert(1)</script><p>The last word.</p>]]></description>
</item></channel></rss>"""


async def test_the_whole_text_reaches_readers(database_url: str) -> None:
    async with full_feed(database_url, republish=True) as client:
        (listed,) = (await client.get("/api/v1/feeds/entries")).json["entries"]
        path = f"feeds/entries/{listed['id']}"
        card = (await client.get(f"/api/v1/{path}")).json
        with_images = (await client.get(f"/api/v1/{path}", images="true")).json
        page = (await client.get(f"/pipelines/{path}", headers={"accept": "text/html"})).text
        shown = await client.get(f"/pipelines/{path}?images=true", headers={"accept": "text/html"})
        fed = (await client.get("/feeds/feeds.json")).json["items"][0]["content_html"]

    assert "text" not in listed
    assert len(card["text"]) > 20_000
    assert card["text"].endswith("The last word.")
    assert "[image: A lamp]" in card["content_html"]
    assert "<img" not in card["content_html"]
    assert '<img src="https://full.example/lamp.png" alt="A lamp"' in with_images["content_html"]
    for html in (card["content_html"], with_images["content_html"], page, shown.text, fed):
        assert "alert(1)" not in html
        assert "The last word." in html
    assert "<img" not in page
    assert "Show 1 image" in page
    assert '<img src="https://full.example/lamp.png"' in shown.text
    assert "img-src 'self' https:" in shown.headers["content-security-policy"]


async def test_what_may_not_be_republished_stays_inside(database_url: str) -> None:
    async with full_feed(database_url, republish=False) as client:
        (listed,) = (await client.get("/api/v1/feeds/entries")).json["entries"]
        card = (await client.get(f"/api/v1/feeds/entries/{listed['id']}")).json
        fed = (await client.get("/feeds/feeds.json")).json["items"][0]["content_html"]

    assert "content_html" not in card
    assert "The last word." not in fed


@asynccontextmanager
async def full_feed(database_url: str, *, republish: bool) -> AsyncIterator[Client]:
    """Serve what became of a feed with one long entry."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        status, body = (200, FULL_FEED.encode()) if scope["path"] == "/feed.xml" else (404, b"")
        headers = [(b"content-type", b"application/rss+xml")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async with StandIn(app) as web:
        settings = feeds.Settings(feeds=[feeds.FeedSetting(url=f"{web.url}/feed.xml")], republish=republish)
        pipeline = feeds.build(settings)
        async with Engine(database_url, [pipeline], loopback=[("127.0.0.1", web.port)]) as engine:
            await engine.discover()
            await engine.work_until_idle()
            await engine.follow()
            yield Client(build(backend_of(engine.app, SERVER, loopback=True)))
