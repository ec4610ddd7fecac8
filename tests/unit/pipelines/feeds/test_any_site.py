"""Sites without a feed: JSON APIs, list pages, sitemaps, a watched element, well-known services. All over real HTTP."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest
from tests.support.clock import ManualClock
from tests.unit.pipelines.feeds.sites import NOW_MS

from tidings.discover.feed.markup import plain_text, without_headline
from tidings.discover.listing import UnexpectedContent
from tidings.discover.markup_tree import tree_of, words_of
from tidings.discover.presets import PRESETS
from tidings.discover.probe import probe
from tidings.discover.times import time_ms
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput
from tidings.model.pipeline import Page, Run
from tidings.model.source_definition import SourceDefinition
from tidings.model.workflow import Work
from tidings.net.client import Web
from tidings.pipelines import feeds
from tidings.pipelines.feeds.body import EntryBody
from tidings.pipelines.feeds.notices import announce
from tidings.process.enrich.enricher import MeteredEnricher
from tidings.process.extract.extractor import ChildExtractor
from tidings.process.memory_ledger import MemoryLedger
from tidings.sample.serving import StandIn

HTML, JSON, XML = "text/html; charset=utf-8", "application/json", "application/xml"


@dataclass
class Site:
    """What stands at each address; addresses with a query may be named with it."""

    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    headers: dict[str, Mapping[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    kit: Any = None
    url: str = ""

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        query = scope["query_string"].decode()
        address = f"{scope['path']}?{query}" if query else scope["path"]
        self.asked.append(address)
        kind, body = self.pages.get(address) or self.pages.get(scope["path"]) or ("text/plain", b"")
        headers = [(b"content-type", kind.encode())]
        headers += [(name.encode(), value.encode()) for name, value in self.headers.get(address, {}).items()]
        await send({"type": "http.response.start", "status": 200 if body else 404, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def put(self, path: str, value: Any, kind: str = "") -> None:
        if isinstance(value, (dict, list)):
            kind, value = kind or JSON, json.dumps(value)
        body = value.encode() if isinstance(value, str) else value
        self.pages[path] = (kind or (XML if body.lstrip().startswith(b"<?xml") else HTML), body)

    async def look(self, kind: str, path: str, before: Page | None = None, **options: Any) -> Page:
        """Ask a source, with what the run before left behind."""
        (source,) = feeds.build(
            feeds.Settings(feeds=[feeds.FeedSetting(url=self.url + path, kind=kind, options=options)])
        ).sources
        cursor, mark = (before.cursor, before.mark) if before is not None else (None, None)
        pages = [
            page
            async for page in source.pages(Run(source.name, NOW_MS, cursor, mark, is_first=before is None), self.kit)
        ]
        return replace(pages[-1], findings=tuple(each for page in pages for each in page.findings))


@asynccontextmanager
async def a_site() -> AsyncIterator[Site]:
    site, clock = Site(), ManualClock(NOW_MS)
    async with StandIn(site) as server:
        allowed = frozenset({("127.0.0.1", server.port)})
        web = Web(user_agent="t/1", clock=clock, per_host_delay_seconds=0, obey_robots=False, loopback_allowed=allowed)
        async with web, ChildExtractor() as extractor:
            ledger = MemoryLedger(clock)
            site.kit = Kit(web, extractor, MeteredEnricher(ledger, clock=clock), ledger, clock)
            site.url = server.url
            yield site


def bodies(page: Page) -> list[dict[str, Any]]:
    return [json.loads(finding.payload) for finding in page.findings]


def titles(page: Page) -> list[str]:
    return [body["title"] for body in bodies(page)]


def numbered(first: int, last: int) -> list[dict[str, Any]]:
    return [{"id": n, "title": f"Thing {n}", "url": f"/thing/{n}"} for n in range(first, last + 1)]


async def test_a_json_api_is_read_by_expressions() -> None:
    async with a_site() as site:
        entry = {
            "uid": 7,
            "name": "Lamp <b>oil</b>",
            "links": {"web": "/oil"},
            "body": "<p>Cheap <script>x()</script><a href='/more'>oil</a></p>",
            "who": {"name": "Ada"},
            "when": 1_799_999_000,
            "topics": [{"label": "oil"}, {"label": "lamps"}],
        }
        site.put("/api", {"data": {"results": [entry]}})
        fields: dict[str, Any] = {
            "id": "uid",
            "title": "name",
            "url": "links.web",
            "text": "body",
            "author": "who.name",
            "published": "when",
            "tags": "topics[].label",
        }
        page = await site.look("json", "/api", items="data.results", **fields)
        again = await site.look("json", "/api", page, items="data.results", **fields)

    (body,) = bodies(page)
    assert (body["id"], body["title"], body["author"]) == ("7", "Lamp oil", "Ada")
    assert body["url"] == f"{site.url}/oil"
    assert body["published_ms"] == 1_799_999_000_000
    assert body["tags"] == ["oil", "lamps"]
    assert body["feed_text"] == "Cheap oil"
    assert f'<a href="{site.url}/more"' in body["content_html"]
    assert "script" not in body["content_html"]
    assert again.findings == ()
    assert again.note == "not changed"


@pytest.mark.parametrize("paging", ["page", "offset", "cursor", "link", "link by header"])
async def test_a_json_api_is_read_page_by_page(paging: str) -> None:
    options: dict[str, Any] = {"items": "items", "paging": paging.split()[0]}
    async with a_site() as site:
        if paging == "page":
            addresses = ["/api?q=1", "/api?q=1&page=2", "/api?q=1&page=3"]
        elif paging == "offset":
            addresses = ["/api?q=1", "/api?q=1&offset=2", "/api?q=1&offset=4"]
        else:
            addresses = ["/api?q=1", "/api?q=1&cursor=b", "/api?q=1&cursor=c"]
        for number, address in enumerate(addresses):
            following = addresses[number + 1] if number < 2 else None
            answer: dict[str, Any] = {"items": numbered(2 * number + 1, 2 * number + 2)}
            if paging == "link by header" and following:
                site.headers[address] = {"link": f'<{following}>; rel="next", </api>; rel="first"'}
            elif paging == "cursor":
                answer["after"] = parse_qs(following.partition("?")[2])["cursor"][0] if following else None
            elif paging == "link":
                answer["after"] = following
            site.put(address, answer)
        site.put("/api", {"items": []})
        if paging in ("cursor", "link"):
            options["next"] = "after"
        page = await site.look("json", "/api?q=1", **options)
        cut = await site.look("json", "/api?q=1", **options, pages=2)

    assert titles(page) == [f"Thing {n}" for n in range(1, 7)]
    assert page.incomplete is None
    assert len(cut.findings) == 4
    assert "more pages than 2" in (cut.incomplete or "")


async def test_an_api_that_names_another_host_as_its_next_page_is_not_followed() -> None:
    async with a_site() as site:
        site.put("/api", {"items": numbered(1, 1), "next": "http://169.254.169.254/latest"})
        page = await site.look("json", "/api", items="items", paging="link", next="next")

    assert titles(page) == ["Thing 1"]
    assert site.asked == ["/api"]


@pytest.mark.parametrize(
    ("answer", "options", "message"),
    [
        (
            {"results": []},
            {"items": "data.items"},
            "items: `data.items` found nothing in the answer; there are: results",
        ),
        ({"items": {"a": 1}}, {"items": "items"}, "items: `items` found an object, not a list"),
        (
            {"items": [{"name": "x", "href": "/x"}]},
            {"items": "items", "title": "headline"},
            "title: `headline` found nothing in any of 1 entries; there are: name, href",
        ),
        ({"items": [{"n": 1}]}, {"items": "items", "title": "length(n)"}, "title: `length(n)` does not fit"),
        ("nothing of the sort", {}, "did not answer with JSON"),
    ],
)
async def test_what_an_expression_does_not_find_is_told(answer: Any, options: dict[str, Any], message: str) -> None:
    async with a_site() as site:
        site.put("/api", answer, JSON)
        with pytest.raises(UnexpectedContent) as told:
            await site.look("json", "/api", **options)

    assert message in str(told.value)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("json", {"items": "a["}, "options.items: `a[` is no JMESPath expression"),
        ("json", {"paging": "cursor"}, "options.next"),
        ("json", {"pages": 1_000}, "options: pages"),
        ("json", {"page": 1}, "options.page: this kind of source has no such option"),
        ("html", {"items": "li:::x"}, "options.items: `li:::x` is no CSS selector"),
        ("html", {"items": "li", "url": "a@on click"}, "options.url"),
        ("html", {}, "options"),
        ("page", {"selector": "["}, "options.selector"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(kind: str, options: dict[str, Any], message: str) -> None:
    pipeline = feeds.build(feeds.Settings())
    with pytest.raises(BadInput) as told:
        pipeline.source("", SourceDefinition(address="https://a.example/", kind=kind, options=options))

    assert message in str(told.value)


LIST = """<html><head><title>Shop news</title><base href="/shop/"></head><body><ul>{rows}</ul>{more}</body></html>"""
ROW = '<li class="n"><h3><a href="n/{n}">News {n}</a></h3><time datetime="2026-06-0{n}">x</time>'
ROW += "<p>About <i>{n}</i></p></li>"


async def test_a_list_page_is_read_by_selectors() -> None:
    async with a_site() as site:
        rows = "".join(ROW.format(n=n) for n in (1, 2))
        site.put("/news", LIST.format(rows=rows, more='<a rel="next" href="/news?page=2">older</a>'))
        site.put("/news?page=2", LIST.format(rows=ROW.format(n=3), more=""))
        options: dict[str, Any] = {"items": "li.n", "text": "p", "next": "a[rel=next]@href", "pages": 5}
        page = await site.look("html", "/news", **options)
        first = await site.look("html", "/news", **{**options, "pages": 1})

    assert titles(page) == ["News 3", "News 2", "News 1"]
    assert [body["url"] for body in bodies(page)] == [f"{site.url}/shop/n/{n}" for n in (3, 2, 1)]
    assert bodies(page)[0]["published_ms"] == time_ms("2026-06-03")
    assert bodies(page)[0]["feed_title"] == "Shop news"
    assert bodies(page)[0]["feed_text"] == "About 3"
    assert "more pages than 1" in (first.incomplete or "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"items": "tr.none"}, "items: `tr.none` found nothing on the page"),
        ({"items": "li", "author": ".by"}, "author: `.by` found nothing in any of 1 entries"),
    ],
)
async def test_what_a_selector_does_not_find_is_told(options: dict[str, Any], message: str) -> None:
    async with a_site() as site:
        site.put("/news", LIST.format(rows=ROW.format(n=1), more=""))
        with pytest.raises(UnexpectedContent) as told:
            await site.look("html", "/news", **options)

    assert message in str(told.value)


SHOP = "<html><head><title>Lamp shop</title></head><body><div id=p>{price}</div><p>{noise}</p></body></html>"


async def test_a_watched_element_tells_each_change_and_nothing_else() -> None:
    async with a_site() as site:
        site.put("/lamp", SHOP.format(price="10 €", noise="1"))
        first = await site.look("page", "/lamp", selector="#p")
        site.put("/lamp", SHOP.format(price="10 €", noise="2"))
        same = await site.look("page", "/lamp", first, selector="#p")
        site.put("/lamp", SHOP.format(price="12 € <script>alert(1)</script>", noise="2"))
        dearer = await site.look("page", "/lamp", same, selector="#p")
        site.put("/lamp", SHOP.format(price="10 €", noise="2"))
        back = await site.look("page", "/lamp", dearer, selector="#p")

    assert titles(first) == ["Lamp shop: watched from now on"]
    assert same.findings == ()
    assert titles(dearer) == ["Lamp shop: 10 € → 12 €"]
    assert titles(back) == ["Lamp shop: 12 € → 10 €"]
    (body,) = bodies(dearer)
    assert body["feed_text"] == "− 10 €\n+ 12 €"
    assert "<del>10 €</del>" in body["content_html"]
    assert "<ins>12 €</ins>" in body["content_html"]
    assert "full_text" in body  # its page is not read
    assert len({each.key for page in (first, dearer, back) for each in page.findings}) == 3


async def test_a_change_in_a_long_text_is_shown_with_its_surroundings() -> None:
    async with a_site() as site:
        lines = [f"<li>Term {n}" for n in range(1, 41)]
        site.put("/terms", "<title>Terms</title><ol>" + "".join(lines) + "</ol>")
        first = await site.look("page", "/terms", selector="ol")
        lines[20] = "<li>Term 21 &lt;b&gt; costs more"
        site.put("/terms", "<title>Terms</title><ol>" + "".join(lines) + "</ol>")
        changed = await site.look("page", "/terms", first, selector="ol")

    (body,) = bodies(changed)
    assert body["title"] == "Terms: changed"
    assert body["feed_text"] == "− Term 21\n+ Term 21 <b> costs more"
    diff = plain_text(body["content_html"].partition("<h3>")[0], 5_000)
    assert diff.split("\n") == [
        "…",
        "Term 19",
        "Term 20",
        "Term 21",
        "Term 21 <b> costs more",
        "Term 22",
        "Term 23",
        "…",
    ]


async def test_a_watched_element_that_went_away_is_told() -> None:
    async with a_site() as site:
        site.put("/lamp", SHOP.format(price="10 €", noise=""))
        with pytest.raises(UnexpectedContent, match="selector: `#price` found nothing on the page"):
            await site.look("page", "/lamp", selector="#price")


SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"


async def test_a_sitemap_is_read_through_its_index() -> None:
    async with a_site() as site:
        index = "".join(
            f"<sitemap><loc>{site.url}/{name}</loc><lastmod>2026-0{n}-01</lastmod></sitemap>"
            for n, name in ((1, "old.xml.gz"), (2, "news.xml"), (3, "gone.xml"))
        )
        old = "".join(f"<url><loc>{site.url}/blog/post-{n}</loc><lastmod>2026-01-0{n}</lastmod></url>" for n in (1, 2))
        news = (
            f"<url><loc>{site.url}/n/1</loc><n:news><n:publication><n:name>Paper</n:name></n:publication>"
            "<n:publication_date>2026-02-03T04:05:06Z</n:publication_date><n:title>Lamps &amp; oil</n:title>"
            "<n:keywords>lamp, oil</n:keywords></n:news></url>"
        )
        space = f'xmlns="{SITEMAP}" xmlns:n="http://www.google.com/schemas/sitemap-news/0.9"'
        site.put("/sitemap.xml", f'<?xml version="1.0"?><sitemapindex {space}>{index}</sitemapindex>')
        site.put("/old.xml.gz", gzip.compress(f"<urlset {space}>{old}</urlset>".encode()), "application/gzip")
        site.put("/news.xml", f'<?xml version="1.0"?><urlset {space}>{news}</urlset>')
        page = await site.look("sitemap", "/")
        blog = await site.look("sitemap", "/sitemap.xml", pattern="/blog/", newest=1)

    assert titles(page) == ["Lamps & oil", "Post 2", "Post 1"]
    assert bodies(page)[0]["published_ms"] == time_ms("2026-02-03T04:05:06Z")
    assert bodies(page)[0]["tags"] == ["lamp", "oil"]
    assert [each.reason for each in page.rejected if "gone.xml" in each.reason]
    assert titles(blog) == ["Post 2"]
    assert "1 older pages" in (blog.incomplete or "")


BOMB = '<!DOCTYPE u [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html><body>no</body></html>", "it begins with <html>"),
        (b"no sitemap", "neither XML nor a list of addresses"),
        (b"<urlset></urlset>", "names no address"),
        (b"\x1f\x8bbroken", "no sitemap that can be read"),
        ((BOMB + "<urlset><url><loc>&b;</loc></url></urlset>").encode(), "names no address"),
    ],
)
async def test_what_is_no_sitemap_is_refused_with_the_reason(body: bytes, message: str) -> None:
    async with a_site() as site:
        site.put("/sitemap.xml", body, XML)
        with pytest.raises(UnexpectedContent) as told:
            await site.look("sitemap", "/sitemap.xml")

    assert message in str(told.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-06-02T09:00:00Z", 1_780_390_800_000),
        ("2026-06-02 09:00:00", 1_780_390_800_000),
        ("2026-06-02T11:00:00+02:00", 1_780_390_800_000),
        ("Tue, 02 Jun 2026 09:00:00 GMT", 1_780_390_800_000),
        (1_780_390_800, 1_780_390_800_000),
        (1_780_390_800.5, 1_780_390_800_500),
        ("1780390800000", 1_780_390_800_000),
        (1_780_390_800_000_000, 1_780_390_800_000),
        ("20260602", 1_780_358_400_000),
        ("02.06.2026", 1_780_358_400_000),
        ("2026/06/02", 1_780_358_400_000),
        ("June 2nd, 2026", 1_780_358_400_000),
        ("2 Jun 2026", 1_780_358_400_000),
        ("02/06/2026", None),
        ("yesterday", None),
        (True, None),
        ("", None),
        ("9" * 400, None),
        (float("nan"), None),
    ],
)
def test_times_are_read_in_any_usual_form(written: object, meant: int | None) -> None:
    assert time_ms(written) == meant


@pytest.mark.parametrize(
    ("kind", "address", "feed"),
    [
        ("github-releases", "https://github.com/ada/lamp.git", "https://github.com/ada/lamp/releases.atom"),
        ("mastodon", "https://m.example/@ada", "https://m.example/@ada.rss"),
        ("mastodon", "https://m.example/tags/lamps", "https://m.example/tags/lamps.rss"),
        ("bluesky", "https://bsky.app/profile/ada.example", "https://bsky.app/profile/ada.example/rss"),
        (
            "youtube",
            "https://www.youtube.com/channel/UCaaaaaaaaaaaaaaaaaaaaaa",
            "https://www.youtube.com/feeds/videos.xml?channel_id=UCaaaaaaaaaaaaaaaaaaaaaa",
        ),
        (
            "youtube",
            "https://www.youtube.com/playlist?list=PLaaaaaaaaaaaa",
            "https://www.youtube.com/feeds/videos.xml?playlist_id=PLaaaaaaaaaaaa",
        ),
        ("youtube", "https://www.youtube.com/@ada", "https://www.youtube.com/@ada"),
        ("reddit", "https://old.reddit.com/r/lamps/new", "https://www.reddit.com/r/lamps/.rss"),
    ],
)
def test_presets_know_the_feed_of_a_page(kind: str, address: str, feed: str) -> None:
    preset = next(each for each in PRESETS if each.kind == kind)
    assert preset.feed_address(address) == feed


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.kind)
def test_presets_refuse_other_addresses(preset: Any) -> None:
    for address in ("https://elsewhere.example/", "https://elsewhere.example/r/x", "https://github.com/x"):
        with pytest.raises(BadInput, match="it knows https://"):
            preset.feed_address(address)


def test_hostile_pages_are_read_within_bounds() -> None:
    deep = b"<div>" * 50_000 + b"the end" + b"</div>" * 50_000
    tree = tree_of(deep, "text/html; charset=utf-7")
    assert tree is None or isinstance(words_of(tree), str)
    assert tree_of(b"", None) is None
    assert words_of(tree_of("<p>Grüße".encode("latin-1"), "text/html; charset=iso-8859-1")) == "Grüße"


async def test_an_address_is_tried_in_every_way() -> None:
    async with a_site() as site:
        pipeline = feeds.build(feeds.Settings())
        site.put(
            "/api",
            {"meta": {"n": 2}, "data": {"posts": [{"headline": f"A post {n}", "link": f"/{n}"} for n in (1, 2)]}},
        )
        rows = "".join(f'<div class="news-row x"><a href="/n/{n}">Some news {n}</a></div>' for n in range(4))
        site.put("/list", f"<html><title>List</title><nav><a href=/>Home</a></nav>{rows}</html>")
        api = await probe(pipeline, f"{site.url}/api", site.kit)
        page = await probe(pipeline, f"{site.url}/list", site.kit)
        nothing = await probe(pipeline, f"{site.url}/none", site.kit)

    (first, *_) = [each.preview for each in api]
    assert (first.kind, first.found, first.error) == ("json", 2, None)
    assert [each.title for each in first.entries] == ["A post 1", "A post 2"]
    assert first.options == {"items": "data.posts", "title": "headline", "url": "link"}
    (first, *rest) = [each.preview for each in page]
    assert (first.kind, first.found, first.options) == ("html", 4, {"items": "div.news-row"})
    assert [(each.kind, each.found) for each in rest if each.error is None] == [("page", 1)]
    assert all(each.preview.error for each in nothing)


async def test_what_stood_on_a_page_without_dates_is_no_news() -> None:
    async with a_site() as site:
        site.put("/api", [{"id": n, "title": f"Old {n}"} for n in range(3)])
        first = await site.look("json", "/api", url="link || ''")
        site.put("/api", [{"id": 9, "title": "New"}, {"id": 1, "title": "Old 1"}])
        second = await site.look("json", "/api", first, url="link || ''")

    assert [len(announced(body)) for body in bodies(first)] == [0, 0, 0]
    assert [len(announced(body)) for body in bodies(second)] == [1, 1]  # the second is known by then: a revision


def announced(raw: dict[str, Any]) -> tuple[Any, ...]:
    """Return what an entry that is shown for the first time tells people."""
    body = msgspec.structs.replace(msgspec.convert(raw, EntryBody), first_shown_at=NOW_MS, processed_at=NOW_MS)
    return announce(Work("feeds", "entry", "x/1", "summarized", 1, 1, NOW_MS, body, None))


def test_a_page_that_begins_with_its_title_says_it_once() -> None:
    assert without_headline("<h1>A  lamp</h1>\n<p>It burns.</p>", "A Lamp") == "<p>It burns.</p>"
    assert without_headline("<h2>Part</h2><p>x</p>", "A Lamp") == "<h2>Part</h2><p>x</p>"
