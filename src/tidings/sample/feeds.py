"""Stand-ins for small websites with feeds: Atom, RSS or JSON, pages with furniture around the text, moves and ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {"atom": "application/atom+xml", "rss": "application/rss+xml", "json": "application/feed+json"}


@dataclass
class SampleEntry:
    """One entry and its page."""

    id: str
    path: str
    title: str
    published_ms: int
    summary: str = ""
    author: str = ""
    paragraphs: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


@dataclass
class SampleFeed:
    """One website; served under `/<host>`."""

    host: str
    title: str
    format: str = "atom"
    feed_path: str = "/feed"
    home_path: str = "/"
    subtitle: str = ""
    author: str = ""
    menu: list[str] = field(default_factory=list)
    footer: str = ""
    cookie_notice: str = ""
    entries: list[SampleEntry] = field(default_factory=list)
    ttl_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """One request as it was received and answered."""

    path: str
    status: int
    conditional: bool


class FeedSites:
    """The websites, and the application that serves them all."""

    def __init__(self, feeds: Iterable[SampleFeed], *, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.feeds = {feed.host: feed for feed in feeds}
        self.moved: dict[str, tuple[int, str]] = {}
        """Path -> status and the path it answers with."""
        self.gone: dict[str, int] = {}
        """Path -> status: 404, 410, 503."""
        self.instead: dict[str, tuple[str, bytes]] = {}
        """Path -> media type and body served in place of the real thing."""
        self.robots = ""
        self.asked: list[FeedRequest] = []
        self.app = Starlette(routes=[Route("/{path:path}", self._serve)])

    @classmethod
    def from_package(cls, now_ms: Callable[[], int]) -> FeedSites:
        """Serve the sample world that ships; ages count from now."""
        folder = files("tidings.sample") / "data" / "feeds"
        entries = [json.loads(line) for line in (folder / "entries.jsonl").read_text("utf-8").splitlines()]
        records = [json.loads(line) for line in (folder / "feeds.jsonl").read_text("utf-8").splitlines()]
        return cls([from_record(record, entries, now_ms()) for record in records], now_ms=now_ms)

    def addresses(self, base: str) -> list[str]:
        """Return where the feeds are."""
        return [f"{base}/{feed.host}{feed.feed_path}" for feed in self.feeds.values()]

    def settings(self, base: str) -> list[dict[str, str]]:
        """Return the feeds as they stand in a configuration."""
        names = [feed.title for feed in self.feeds.values()]
        return [{"url": url, "name": name} for url, name in zip(self.addresses(base), names, strict=True)]

    async def _serve(self, request: Request) -> Response:
        path = request.url.path
        status, media_type, body, headers = self._answer(path, str(request.base_url).rstrip("/"))
        if status == 200:
            headers["etag"] = f'"{sha256(body).hexdigest()[:20]}"'
            if request.headers.get("if-none-match") == headers["etag"]:
                status, body = 304, b""
        self.asked.append(FeedRequest(path, status, "if-none-match" in request.headers))
        return Response(body, status, headers=headers, media_type=media_type)

    def _answer(self, path: str, base: str) -> tuple[int, str, bytes, dict[str, str]]:
        if path == "/robots.txt":
            return (200 if self.robots else 404), "text/plain", self.robots.encode(), {}
        if path in self.moved:
            status, target = self.moved[path]
            return status, "text/plain", b"", {"location": f"{base}{target}"}
        if path in self.gone:
            return self.gone[path], "text/html", b"<html><body>Not here.</body></html>", {}
        if path in self.instead:
            media_type, body = self.instead[path]
            return 200, media_type, body, {}
        host, _, rest = path.lstrip("/").partition("/")
        feed = self.feeds.get(host)
        if feed is None:
            return 404, "text/html", b"<html><body>No such site.</body></html>", {}
        return self._of(feed, f"/{rest}", f"{base}/{host}")

    def _of(self, feed: SampleFeed, path: str, home: str) -> tuple[int, str, bytes, dict[str, str]]:
        entries = sorted(
            (entry for entry in feed.entries if entry.published_ms <= self._now_ms()), key=lambda e: -e.published_ms
        )
        if path == feed.feed_path:
            return 200, TYPES[feed.format], WRITERS[feed.format](feed, entries, home), {}
        if path == feed.home_path:
            return 200, "text/html", front_page(feed, entries, home), {}
        for entry in entries:
            if path == entry.path:
                return 200, "text/html", entry_page(feed, entry, home), {}
        return 404, "text/html", b"<html><body>Not here.</body></html>", {}


def from_record(record: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], start_ms: int) -> SampleFeed:
    """Make a website of the sample world's records."""
    names = (
        "host",
        "title",
        "format",
        "feed_path",
        "home_path",
        "subtitle",
        "author",
        "menu",
        "footer",
        "cookie_notice",
    )
    feed = SampleFeed(**{name: record[name] for name in names})
    for entry in entries:
        if entry["feed"] == record["id"]:
            feed.entries.append(_entry(entry, start_ms))
    return feed


def _entry(record: Mapping[str, Any], start_ms: int) -> SampleEntry:
    arrives = record.get("arrives_after_seconds")
    at_ms = start_ms + arrives * 1000 if arrives is not None else start_ms - record["minutes_ago"] * 60_000
    names = ("id", "path", "title", "summary", "author", "paragraphs", "tags")
    return SampleEntry(published_ms=at_ms, **{name: record[name] for name in names})


def atom(feed: SampleFeed, entries: Iterable[SampleEntry], home: str) -> bytes:
    """Write an Atom feed."""
    written = "".join(
        f"<entry><id>tag:{escape(feed.host)},2026:{escape(entry.id)}</id><title>{escape(entry.title)}</title>"
        f'<link rel="alternate" href="{home}{entry.path}"/><published>{_moment(entry).isoformat()}</published>'
        f"<updated>{_moment(entry).isoformat()}</updated><author><name>{escape(entry.author)}</name></author>"
        f"<summary>{escape(entry.summary)}</summary>"
        + "".join(f'<category term="{escape(tag)}"/>' for tag in entry.tags)
        + "</entry>\n"
        for entry in entries
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">'
        f"<id>tag:{escape(feed.host)},2026:feed</id><title>{escape(feed.title)}</title>"
        f"<subtitle>{escape(feed.subtitle)}</subtitle>"
        f'<link rel="alternate" href="{home}{feed.home_path}"/><link rel="self" href="{home}{feed.feed_path}"/>'
        f"<author><name>{escape(feed.author)}</name></author>\n{written}</feed>"
    ).encode()


def rss(feed: SampleFeed, entries: Iterable[SampleEntry], home: str) -> bytes:
    """Write an RSS feed."""
    items = "".join(
        f"<item><title>{escape(entry.title)}</title><link>{home}{entry.path}</link>"
        f'<guid isPermaLink="false">{escape(entry.id)}</guid><pubDate>{format_datetime(_moment(entry))}</pubDate>'
        f"<description>{escape(entry.summary)}</description></item>\n"
        for entry in entries
    )
    ttl = f"<ttl>{feed.ttl_minutes}</ttl>" if feed.ttl_minutes else ""
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel><title>{escape(feed.title)}</title>'
        f"<link>{home}/</link><description>{escape(feed.subtitle)}</description>{ttl}\n{items}</channel></rss>"
    ).encode()


def json_feed(feed: SampleFeed, entries: Iterable[SampleEntry], home: str) -> bytes:
    """Write a JSON feed."""
    items = [
        {
            "id": entry.id,
            "url": f"{home}{entry.path}",
            "title": entry.title,
            "summary": entry.summary,
            "date_published": _moment(entry).isoformat(),
            "authors": [{"name": entry.author}],
            "tags": entry.tags,
        }
        for entry in entries
    ]
    return json.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": feed.title,
            "description": feed.subtitle,
            "home_page_url": f"{home}{feed.home_path}",
            "feed_url": f"{home}{feed.feed_path}",
            "items": items,
        }
    ).encode()


WRITERS: dict[str, Callable[[SampleFeed, Iterable[SampleEntry], str], bytes]] = {
    "atom": atom,
    "rss": rss,
    "json": json_feed,
}


def front_page(feed: SampleFeed, entries: Iterable[SampleEntry], home: str) -> bytes:
    """Write the page that announces the feed."""
    lines = "".join(f'<li><a href="{home}{entry.path}">{escape(entry.title)}</a></li>' for entry in entries)
    return _page(feed, feed.title, f"<h1>{escape(feed.title)}</h1><ul>{lines}</ul>", home)


def entry_page(feed: SampleFeed, entry: SampleEntry, home: str) -> bytes:
    """Write an entry's page: the text in the middle of everything else."""
    blocks = "".join(
        f"<h2>{escape(text[3:])}</h2>\n" if text.startswith("## ") else f"<p>{escape(text)}</p>\n"
        for text in entry.paragraphs
    )
    moment = _moment(entry)
    body = (
        f'<article><h1>{escape(entry.title)}</h1><p class="byline">By {escape(entry.author)}, '
        f'<time datetime="{moment.isoformat()}">{moment:%d %B %Y}</time></p>\n{blocks}</article>'
    )
    return _page(feed, entry.title, body, home)


def _page(feed: SampleFeed, title: str, body: str, home: str) -> bytes:
    menu = "".join(f'<li><a href="{home}/">{escape(each)}</a></li>' for each in feed.menu)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<link rel="alternate" type="{TYPES[feed.format]}" href="{home}{feed.feed_path}"></head><body>'
        f'<div class="cookie-banner">{escape(feed.cookie_notice)} <button>Fine</button></div>'
        f"<header><nav><ul>{menu}</ul></nav></header><main>{body}</main>"
        f"<footer><p>{escape(feed.footer)}</p></footer></body></html>"
    ).encode()


def _moment(entry: SampleEntry) -> datetime:
    return datetime.fromtimestamp(entry.published_ms // 1000, UTC)
