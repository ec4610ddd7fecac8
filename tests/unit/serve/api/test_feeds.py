from __future__ import annotations

import html

import feedparser
import msgspec
import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import HOUR_MS, NOW_MS, Article, Story, World

from tidings.discover.feed import parse_feed
from tidings.serve.application import build

FORMS = ("rss", "atom", "json")


@pytest.mark.parametrize("form", ["rss", "atom"])
async def test_a_feed_parser_reads_what_we_write(client: Client, form: str):
    answer = await client.get(f"/feeds/bitcoin_news.{form}")
    feed = feedparser.parse(answer.body)

    assert not feed.bozo
    assert feed.feed.title == "Bitcoin news"
    assert len(feed.entries) == 8
    first = feed.entries[0]
    assert first.title == "Headline 0"
    assert first.link == "https://news.example/0"
    assert first.id.startswith("urn:uuid:")
    assert first.published_parsed.tm_year == 2026
    assert "Summary of 0" in first.content[0].value


async def test_the_json_feed_has_the_same_entries(client: Client):
    feed = (await client.get("/feeds/bitcoin_news.json")).json
    atom = feedparser.parse((await client.get("/feeds/bitcoin_news.atom")).body)

    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert [item["id"] for item in feed["items"]] == [entry.id for entry in atom.entries]


@pytest.mark.parametrize("form", FORMS)
async def test_feeds_answer_any_search_and_have_entity_tags(client: Client, form: str):
    answer = await client.get(f"/feeds/hacker_news.{form}", q="type:story")
    again = await client.get(
        f"/feeds/hacker_news.{form}?q=type:story", headers={"if-none-match": answer.headers["etag"]}
    )

    assert answer.status == 200
    assert b"One file and a loop" in answer.body
    assert b"We hire" not in answer.body
    assert again.status == 304


@pytest.mark.parametrize("form", FORMS)
async def test_our_own_feed_source_reads_what_we_write(client: Client, form: str):
    answer = await client.get(f"/feeds/bitcoin_news.{form}")

    feed = parse_feed(answer.body, answer.headers["content-type"], "http://127.0.0.1:8000/feeds/x")

    assert feed.flaw is None
    assert feed.empty == ()
    assert [entry.title for entry in feed.entries] == [f"Headline {n}" for n in range(8)]
    assert [entry.url for entry in feed.entries] == [f"https://news.example/{n}" for n in range(8)]
    assert all(entry.id.startswith("urn:uuid:") for entry in feed.entries)
    assert [entry.published_ms for entry in feed.entries] == [NOW_MS - n * HOUR_MS for n in range(8)]
    assert "Summary of 0" in feed.entries[0].content_html
    assert feed.entries[0].author == "The Ledger Post"


async def test_ids_stay_when_the_content_changes(client: Client, world: World):
    before = (await client.get("/feeds/bitcoin_news.json")).json["items"][0]["id"]
    world.add_article(Article(id="a0", title="Corrected", link="https://news.example/elsewhere"), age_hours=0)

    after = (await Client(build(world.backend())).get("/feeds/bitcoin_news.json")).json["items"][0]

    assert after["title"] == "Corrected"
    assert after["id"] == before


@pytest.mark.parametrize("form", FORMS)
async def test_foreign_markup_and_characters_are_harmless_in_feeds(client: Client, world: World, form: str):
    evil = '<script>alert(1)</script><img src=x onerror=alert(1)><a href="javascript:x">x</a>\x00\x0b\u202e]]>&'
    world.add_story(Story(id=666, type="story", by=evil, title=evil, url="javascript:alert(1)", text=evil))

    answer = await client.get(f"/feeds/hacker_news.{form}", q="alert")

    assert answer.status == 200
    if form == "json":
        item = msgspec.json.decode(answer.body)["items"][0]
        content, url = item["content_html"], item["url"]
    else:
        feed = feedparser.parse(answer.body, sanitize_html=False)
        assert not feed.bozo
        content, url = feed.entries[0].content[0].value, feed.entries[0].link
    assert "<script" not in content
    assert "onerror" not in content
    assert "javascript:" not in content
    assert url.startswith("http://127.0.0.1:8000/pipelines/hacker_news/items/666")


ODD_TITLES = (
    "Stop using <br> in <b>2026</b>",
    "What &lt;script&gt; and &amp;lt; mean",
    "AT&T and R&D: a < b, b > c & so on",
    "<3 is a heart, &copy is none",
    "5 &times; 3",
)


@pytest.mark.parametrize("title", ODD_TITLES)
@pytest.mark.parametrize("form", FORMS)
async def test_readers_see_the_words_of_the_source(client: Client, world: World, title: str, form: str):
    url = "https://x.example/?a='<b>\""
    world.add_story(Story(id=777, type="story", by="Ada <ada@x.example>", title=title, url=url))

    answer = await client.get(f"/feeds/hacker_news.{form}", q="type:story")
    ours = parse_feed(answer.body, answer.headers["content-type"], "http://127.0.0.1:8000/feeds/x").entries[0]

    if form == "json":
        item = msgspec.json.decode(answer.body)["items"][0]
        shown, author, link = item["title"], item["authors"][0]["name"], item["url"]
    else:
        entry = feedparser.parse(answer.body, sanitize_html=False).entries[0]
        is_plain = form == "atom" and entry.title_detail.type == "text/plain"
        shown = entry.title if is_plain else html.unescape(entry.title)
        author, link = entry.author, entry.link
    assert shown == title
    assert author == "Ada \u2039ada@x.example\u203a"
    assert link == "https://x.example/?a='%3Cb%3E%22"
    assert ours.url == link
    # Of a JSON feed our own source takes the title for HTML, because many write it so.
    assert form == "json" or ours.title == title


async def test_a_title_that_is_no_markup_is_written_once_escaped(client: Client, world: World):
    world.add_story(Story(id=777, type="story", by="ada", title="AT&T and R&D", url="https://x.example/"))

    for form in ("rss", "atom"):
        assert b"AT&amp;T and R&amp;D</" in (await client.get(f"/feeds/hacker_news.{form}", q="type:story")).body


async def test_unknown_feeds_and_bad_queries_are_refused(client: Client):
    assert (await client.get("/feeds/nothing.rss")).status == 404
    assert (await client.get("/feeds/bitcoin_news.rss", q='"open')).status == 400
    assert (await client.get("/feeds/all.atom")).status == 200
