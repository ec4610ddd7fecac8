"""A stand-in for the news: two news services, the outlets' feeds and their article pages, all on one port.

/newsdata/api/1/crypto           as https://newsdata.io/api/1/crypto
/apitube/v1/news/everything      as https://api.apitube.io/v1/news/everything
/<outlet's host><its path>       as https://<outlet's host><its path>: feed, front page, articles
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from tidings.model.clock import SystemClock
from tidings.sample.news_apis import Account, apitube_answer, newsdata_answer
from tidings.sample.news_pages import article_page, etag_of, feed, front_page, gone_page
from tidings.sample.serving import Faults

NEWSDATA, APITUBE = "/newsdata/api/1", "/apitube/v1"
MIB = 1024 * 1024
HUGE_MIB = 50


@dataclass(frozen=True)
class Outlet:
    """A newspaper, and the furniture of its pages."""

    id: str
    name: str
    host: str
    rss_path: str = "/rss"
    tagline: str = ""
    country: str = "united kingdom"
    menu: tuple[str, ...] = ()
    cookie_notice: str = ""
    newsletter_box: str = ""
    most_read: tuple[str, ...] = ()
    footer: str = ""


@dataclass(frozen=True)
class Story:
    """An article as its outlet published it."""

    id: str
    outlet: str
    path: str
    title: str
    published_ms: int
    description: str | None = None
    author: str = ""
    story: str = ""
    paragraphs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    provider_sentiment: str | None = None
    language: str = "en"
    providers: tuple[str, ...] = ("newsdata", "apitube", "rss")
    fault: str | None = None
    """How its page misbehaves: gone, times_out_twice, hangs, huge, wrong_charset, empty."""


class News:
    """Holds outlets and stories; `add`, `change` and `remove` move the world, and so does the clock."""

    def __init__(
        self,
        outlets: Iterable[Mapping[str, Any]] = (),
        articles: Iterable[Mapping[str, Any]] = (),
        *,
        now_ms: Callable[[], int] | None = None,
        hang_seconds: float = 60.0,
    ) -> None:
        self.now_ms = now_ms or SystemClock().now_ms
        self.hang_seconds = hang_seconds
        self.outlets = {o["id"]: Outlet(**_tuples(o)) for o in outlets}
        self.stories: dict[str, Story] = {}
        self.newsdata = Account(key="pub_sample_newsdata", credits=200)
        self.apitube = Account(key="api_sample_apitube", credits=100)
        self.faults = Faults()
        """Scripted answers, and every request received."""
        self.page_requests: Counter[str] = Counter()
        """How often each story's page was asked for, by the story's id."""
        for article in articles:
            self.add(**article)
        self.app: ASGIApp = self.faults.wrap(
            Starlette(
                routes=[
                    Route("/robots.txt", _robots),
                    Route(f"{NEWSDATA}/{{endpoint}}", self._newsdata),
                    Route(f"{APITUBE}/news/everything", self._apitube, methods=["GET", "POST"]),
                    Route("/{host}/{path:path}", self._outlet),
                ]
            )
        )

    @classmethod
    def from_package(cls, start_ms: int | None = None, *, now_ms: Callable[[], int] | None = None) -> News:
        """Load the sample world as it stands at `start_ms`; what arrives later arrives by `now_ms`, the clock."""
        clock = now_ms or SystemClock().now_ms
        start = clock() if start_ms is None else start_ms
        folder = resources.files("tidings.sample") / "data" / "news"
        world = cls(json.loads((folder / "outlets.json").read_text("utf-8")), now_ms=clock)
        for line in (folder / "articles.jsonl").read_text("utf-8").splitlines():
            record = json.loads(line)
            minutes, seconds = record.pop("minutes_ago", None), record.pop("arrives_after_seconds", None)
            at = start - minutes * 60_000 if seconds is None else start + seconds * 1000
            world.add(published_ms=at, **record)
        return world

    def settings(self, base_url: str) -> dict[str, Any]:
        """Return what `[pipelines.bitcoin_news]` needs to live in this world."""
        return {
            "newsdata_url": base_url + NEWSDATA,
            "newsdata_key": self.newsdata.key,
            "apitube_url": base_url + APITUBE,
            "apitube_key": self.apitube.key,
            "feeds": [f"{base_url}/{outlet.host}{outlet.rss_path}" for outlet in self.outlets.values()],
        }

    def add(self, **article: Any) -> Story:
        """Publish a story, now unless it says when."""
        article.setdefault("published_ms", self.now_ms())
        story = Story(**_tuples(article))
        self.stories[story.id] = story
        return story

    def change(self, story_id: str, **fields: Any) -> Story:
        """Change a story where it stands."""
        self.stories[story_id] = replace(self.stories[story_id], **_tuples(fields))
        return self.stories[story_id]

    def remove(self, story_id: str) -> None:
        """Take a story back: lists forget it and its page is gone."""
        del self.stories[story_id]

    def listed(self, provider: str, outlet: str | None = None) -> list[Story]:
        """Return what a provider lists now, newest first."""
        now = self.now_ms()
        return sorted(
            (
                story
                for story in self.stories.values()
                if provider in story.providers and story.published_ms <= now and outlet in (None, story.outlet)
            ),
            key=lambda story: (-story.published_ms, story.id),
        )

    def link(self, story: Story, base_url: str) -> str:
        """Return the address of a story's page."""
        return f"{base_url.rstrip('/')}/{self.outlets[story.outlet].host}{story.path}"

    async def _newsdata(self, request: Request) -> Response:
        listed = [
            (story, self.outlets[story.outlet], self.link(story, str(request.base_url)))
            for story in self.listed("newsdata")
        ]
        status, body = newsdata_answer(self.newsdata, request.path_params["endpoint"], request, listed)
        return JSONResponse(body, status)

    async def _apitube(self, request: Request) -> Response:
        listed = [
            (story, self.outlets[story.outlet], self.link(story, str(request.base_url)))
            for story in self.listed("apitube")
        ]
        params = dict(request.query_params)
        if request.method == "POST":
            params |= {name: str(value) for name, value in (await request.json()).items()}
        status, body, headers = apitube_answer(self.apitube, request, params, listed)
        return JSONResponse(body, status, headers)

    async def _outlet(self, request: Request) -> Response:
        host, path = request.path_params["host"], "/" + request.path_params["path"]
        outlet = next((o for o in self.outlets.values() if o.host == host), None)
        if outlet is None:
            return HTMLResponse(gone_page(None), 404)
        base = str(request.base_url)
        if path == outlet.rss_path:
            return self._feed(request, outlet, base)
        now = self.now_ms()
        mine = [s for s in self.stories.values() if s.outlet == outlet.id and s.published_ms <= now]
        if path == "/":
            return HTMLResponse(front_page(outlet, [(s, self.link(s, base)) for s in mine], base))
        story = next((s for s in mine if s.path == path), None)
        if story is None:
            return HTMLResponse(gone_page(outlet), 404)
        return await self._page(request, outlet, story, base)

    def _feed(self, request: Request, outlet: Outlet, base: str) -> Response:
        listed = [(story, self.link(story, base)) for story in self.listed("rss", outlet.id)[:50]]
        body = feed(outlet, listed, f"{base}{outlet.host}{outlet.rss_path}")
        headers = {"etag": etag_of(body), "cache-control": "max-age=300"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type="application/rss+xml; charset=utf-8")

    async def _page(self, request: Request, outlet: Outlet, story: Story, base: str) -> Response:
        self.page_requests[story.id] += 1
        text = article_page(outlet, story, self.link(story, base), base)
        match story.fault:
            case "gone":
                return HTMLResponse(gone_page(outlet), 404)
            case "hangs":
                await self._hang(request)
            case "times_out_twice" if self.page_requests[story.id] <= 2:
                await self._hang(request)
            case "huge":
                return StreamingResponse(_huge(text), media_type="text/html; charset=utf-8")
            case "wrong_charset":
                return Response(text.encode("cp1252", "replace"), media_type="text/html; charset=utf-8")
            case "empty":
                return HTMLResponse("<!doctype html><html><body></body></html>")
        return HTMLResponse(text)

    async def _hang(self, request: Request) -> None:
        """Say nothing until the client gives up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.hang_seconds):
                while (await request.receive())["type"] != "http.disconnect":
                    pass


async def _robots(_: Request) -> Response:
    return PlainTextResponse("User-agent: *\nAllow: /\n")


async def _huge(text: str) -> AsyncIterator[bytes]:
    """Send a page of 50 MiB: the article, and then one endless comment section."""
    yield text.encode()
    filler = b"<p>" + b"first! " * (MIB // 8) + b"</p>\n"
    for _ in range(HUGE_MIB * 8 // 7):
        yield filler


def _tuples(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
