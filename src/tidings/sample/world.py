"""The sample world: stand-ins for every outside service on loopback, fed with what ships in the package."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

from tidings.model.clock import SystemClock
from tidings.sample.ai_endpoint import AiEndpoint
from tidings.sample.ai_endpoint import build as build_ai
from tidings.sample.discord import DiscordStandIn
from tidings.sample.eu_portal import EuPortal
from tidings.sample.feeds import FeedSites
from tidings.sample.github import LIST_PATH, GitHub
from tidings.sample.hacker_news import HackerNews
from tidings.sample.news import News
from tidings.sample.serving import StandIn

CHANNEL = "sample"
AI_KEY = "sample-key"
CREDITS = 10_000
"""A world that is asked every minute needs more of them in a day than a free plan has."""
BLOCKED_NOTICE = "Visual identity for invented agencies"
"""A call whose notice the channel's filter stops: it says "@everyone welcome" and carries a link."""
FLAGGED_CALL = "Phishing literacy"
"""A call whose text the AI endpoint takes for the thing it warns of."""
WAYS_TO_ASK = 3
"""A refused request is made again in simpler forms: by schema, in JSON mode, as plain text."""


class World:
    """All stand-ins, served; an async context manager. A standing world is frozen at its start: nothing new arrives."""

    def __init__(self, *, stands_still: bool = False) -> None:
        start = SystemClock().now_ms()
        now_ms: Callable[[], int] = (lambda: start) if stands_still else SystemClock().now_ms
        self.hacker_news = HackerNews.from_package(now_ms=now_ms)
        self.news = News.from_package(now_ms=now_ms)
        self.news.newsdata.credits = self.news.apitube.credits = CREDITS
        self.eu_portal = EuPortal.from_package(lambda: now_ms() / 1000)
        self.github = GitHub.from_package(now_ms)
        self.feeds = FeedSites.from_package(now_ms)
        self.discord = DiscordStandIn.from_package()
        self.ai = AiEndpoint()
        self._misbehave()
        self._open = AsyncExitStack()
        self._served: dict[str, StandIn] = {}

    def _misbehave(self) -> None:
        """Script what goes wrong on purpose, besides the pages and items that do so in the data.

        Each is refused only once, so that it succeeds when it is revived.
        """
        self.discord.script("429")
        self.discord.blocked[BLOCKED_NOTICE] = 1
        self.ai.script_about(FLAGGED_CALL, *["flagged"] * WAYS_TO_ASK)

    async def __aenter__(self) -> World:
        apps: dict[str, Any] = {
            "hacker_news": self.hacker_news.app,
            "news": self.news.app,
            "eu_portal": self.eu_portal.app,
            "github": self.github.app,
            "feeds": self.feeds.app,
            "discord": self.discord.app,
            "ai": build_ai(self.ai),
        }
        for name, app in apps.items():
            self._served[name] = await self._open.enter_async_context(StandIn(app))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    def url(self, name: str) -> str:
        """Return a stand-in's address."""
        return self._served[name].url

    def loopback(self) -> frozenset[tuple[str, int]]:
        """Return the places that pages may come from here."""
        return frozenset(("127.0.0.1", served.port) for served in self._served.values())

    def settings(self, database_url: str) -> dict[str, Any]:
        """Return the whole configuration that lives in this world; intervals are short, so that it moves."""
        return {
            "database_url": database_url,
            "durability": "crash-safe",
            "per_host_delay_seconds": 0,
            "ai": {
                "base_url": f"{self.url('ai')}/v1",
                "model": "sample-model",
                "api_key": AI_KEY,
                "rate_per_minute": 6000,
                "concurrency": 8,
                "price_in": 0.15,
                "price_out": 0.6,
            },
            "lanes": {"ai": {"concurrency": 8}},
            "notifiers": {"discord": {CHANNEL: {"webhook_url": self.discord.webhook_url(self.url("discord"))}}},
            "routes": [
                {"pipeline": "eu_funding", "channel": CHANNEL, "query": ""},
                {"pipeline": "feeds", "channel": CHANNEL, "query": "feed:the-lampkeepers-log"},
                {"pipeline": "first_issues", "channel": CHANNEL, "query": "difficulty:<=3 freshness:fresh"},
                {"pipeline": "bitcoin_news", "channel": CHANNEL, "query": "wallet sentiment:negative"},
            ],
            "pipelines": {
                "bitcoin_news": {
                    **self.news.settings(self.url("news")),
                    "every": 60,
                    "content_retry_seconds": 1,
                    "newsdata_credits_per_day": CREDITS,
                    "apitube_credits_per_day": CREDITS,
                    "shelf_writes_per_day": 100_000,
                },
                "hacker_news": {
                    "base_url": f"{self.url('hacker_news')}/v0",
                    "every": 5,
                    "history_every": 5,
                    "retry_base_seconds": 0.5,
                },
                "eu_funding": {
                    "base_url": self.url("eu_portal"),
                    "pages_url": f"{self.url('eu_portal')}/info/funding-tenders/opportunities",
                    "every": 60,
                    "pause_seconds": 0,
                    "announce_max_age_days": 10,
                },
                "first_issues": {
                    "github_url": self.url("github"),
                    "list_url": f"{self.url('github')}{LIST_PATH}",
                    "every": 60,
                    "daily_calls": 100_000,
                },
                "feeds": {
                    "feeds": self.feeds.settings(self.url("feeds")),
                    "interval": 60,
                    "min_interval": 60,
                    "max_interval": 60,
                },
            },
        }
