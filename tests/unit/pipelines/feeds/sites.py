"""Small websites over real HTTP, and a kit to reach them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.support.clock import ManualClock

from tidings.model.contracts import Kit
from tidings.model.pipeline import Page, Run
from tidings.model.workflow import Work
from tidings.net.client import Web
from tidings.pipelines import feeds
from tidings.pipelines.feeds.source import FeedSource
from tidings.process.enrich.enricher import MeteredEnricher
from tidings.process.extract.extractor import ChildExtractor
from tidings.process.memory_ledger import MemoryLedger
from tidings.sample.feeds import FeedSites, SampleEntry, SampleFeed
from tidings.sample.serving import StandIn

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
PARAGRAPHS = [
    "Every new hand reaches for the chamois as soon as the lantern door is open, and every old hand tells them not to.",
    "The salt on the glass is a letter from the weather, and once it is wiped off nobody can read it again.",
    "Stand where the beam would hit you in the face and look along the panes with a torch held low and steady.",
    "A fan that spreads upwards from one corner means that air comes in below that corner with some force.",
]


@dataclass
class Sites:
    """Everything a test touches."""

    world: FeedSites
    url: str
    kit: Kit
    clock: ManualClock

    def source(self, path: str = "/lamp.example/feed", **more: Any) -> FeedSource:
        settings = feeds.Settings(feeds=[{"url": self.url + path, **more}])  # type: ignore[list-item]
        (source,) = feeds.build(settings).sources
        assert isinstance(source, FeedSource)
        return source

    async def look(self, source: FeedSource, before: Page | None = None) -> Page:
        """Ask a feed, with what the run before left behind."""
        pages: list[Page] = []
        await self.collect(source, pages, before)
        return replace(pages[-1], findings=tuple(finding for page in pages for finding in page.findings))

    async def collect(self, source: FeedSource, pages: list[Page], before: Page | None = None) -> None:
        """Ask a feed and keep its pages, those before a failure too."""
        cursor, mark = (before.cursor, before.mark) if before else (None, None)
        run = Run(source.name, self.clock.now_ms(), cursor, mark, is_first=before is None)
        async for page in source.pages(run, self.kit):
            pages.append(page)  # noqa: PERF401  # what came before a failure counts

    def work(self, body: Any, accepted: Any = None) -> Work:
        return Work("feeds", "entry", "lamp/1", "found", 1, 1, self.clock.now_ms(), body, accepted)


@asynccontextmanager
async def open_sites(*sites: SampleFeed, obey_robots: bool = False) -> AsyncIterator[Sites]:
    """Serve websites and build a kit that may reach them."""
    clock = ManualClock(NOW_MS)
    world = FeedSites(sites, now_ms=clock.now_ms)
    async with StandIn(world.app) as server:
        web = Web(
            user_agent="tidings-test/1",
            clock=clock,
            per_host_delay_seconds=0,
            obey_robots=obey_robots,
            loopback_allowed=frozenset({("127.0.0.1", server.port)}),
        )
        async with web, ChildExtractor() as extractor:
            ledger = MemoryLedger(clock)
            yield Sites(
                world, server.url, Kit(web, extractor, MeteredEnricher(ledger, clock=clock), ledger, clock), clock
            )


def a_site(host: str = "lamp.example", count: int = 3, **more: Any) -> SampleFeed:
    """Make a website with an entry every two hours."""
    entries = [
        SampleEntry(
            id=f"entry-{n}",
            path=f"/log/{n}",
            title=f"Entry number {n}",
            published_ms=NOW_MS - (count - n) * 2 * HOUR_MS,
            summary=f"What the keeper saw on watch {n}.",
            author="The relief crew",
            paragraphs=PARAGRAPHS,
            tags=["lenses"],
        )
        for n in range(1, count + 1)
    ]
    return SampleFeed(
        host=host,
        title="The Lampkeeper's Log",
        menu=["Log"],
        footer="Written between watches.",
        entries=entries,
        **more,
    )
