"""What sources and waiting processors use: the web, the extractor, the enricher and its ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tidings.model.answers import (
    IssueAnalysis,
    IssueFacts,
    Provenance,
    RepoFacts,
    RepoSummary,
    Sentiment,
    Summary,
)
from tidings.model.clock import Clock
from tidings.model.web import Extract, Response, ServerEvent


class Ledger(Protocol):
    """Caches, budgets and counters behind the enricher; see `process.enrich`."""

    async def get(self, name: str, key: str) -> bytes | None: ...  # noqa: D102
    async def put(self, name: str, key: str, value: bytes, ttl_seconds: int) -> None: ...  # noqa: D102
    async def reserve(self, name: str, amount: int, limit: int) -> bool: ...  # noqa: D102
    async def settle(self, name: str, reserved: int, actual: int) -> None: ...  # noqa: D102
    async def count(self, name: str, amount: int) -> None: ...  # noqa: D102


Answer = TypeVar("Answer")


class Fetcher(Protocol):
    """The web, in two faces; see `net.client.Web`."""

    async def page(  # noqa: D102
        self,
        url: str,
        *,
        accept: str | None = None,
        max_bytes: int | None = None,
        robots: bool = True,
        conditional: bool = False,
    ) -> Response: ...

    async def call(  # noqa: D102
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        data: Any = None,
        timeout_seconds: float = 30,
        conditional: bool = False,
        follow_redirects: bool = False,
        retries: int = 0,
    ) -> Response: ...

    def events(self, url: str, *, silence_seconds: float = 75) -> AsyncIterator[ServerEvent]: ...  # noqa: D102


class Extractor(Protocol):
    """Gets the readable part of a page, in a killable child process."""

    async def extract(
        self, html: bytes, url: str, *, max_chars: int = 10_240, charset: str | None = None, marked_up: bool = False
    ) -> Extract:
        """Return the main text and what the page says of itself; with its markup too if that is wanted."""
        ...

    async def apart(
        self, answer: type[Answer], function: Callable[..., Answer], *arguments: Any, seconds: float = 30
    ) -> Answer:
        """Call a function of a module on untrusted input in the child; return its answer.

        Arguments and answer travel as msgpack. What the function raises is Permanent here, so let it answer instead.
        """
        ...


class Enricher(Protocol):
    """Adds judgment: four questions with closed answers."""

    # Each answer comes with who gave it and what it cost.
    async def summarize(  # noqa: D102
        self,
        text: str,
        *,
        title: str | None = None,
        description: str | None = None,
        pipeline: str = "",
        words: int = 80,
    ) -> tuple[Summary, Provenance]: ...

    async def judge_sentiment(  # noqa: D102
        self, text: str, *, title: str | None = None, pipeline: str = ""
    ) -> tuple[Sentiment, Provenance]: ...

    async def summarize_repo(self, facts: RepoFacts, *, pipeline: str = "") -> tuple[RepoSummary, Provenance]: ...  # noqa: D102

    async def analyze_issue(self, facts: IssueFacts, *, pipeline: str = "") -> tuple[IssueAnalysis, Provenance]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Kit:
    """What a waiting processor or a source may use."""

    fetcher: Fetcher
    extractor: Extractor
    enricher: Enricher
    ledger: Ledger
    clock: Clock


Probe = Callable[[Kit], Awaitable[str]]
"""The cheapest real call to a service, for `tidings doctor`: returns what it found, raises what is wrong."""
