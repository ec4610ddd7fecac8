"""Adds judgment: four questions with closed answers, by the local default or an endpoint, never paid for twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import msgspec

from tidings.model.answers import (
    IssueAnalysis,
    IssueFacts,
    Provenance,
    RepoFacts,
    RepoSummary,
    Sentiment,
    Summary,
)
from tidings.model.clock import Clock, SystemClock, seconds_left_in_day
from tidings.model.contracts import Ledger
from tidings.model.errors import SlowDown
from tidings.model.pace import Pace
from tidings.process.enrich import local
from tidings.process.enrich.circuit import Circuit, EndpointDown
from tidings.process.enrich.endpoint import AnswerRefused, Endpoint, Tab, TooLong, Unusable
from tidings.process.enrich.endpoint.questions import (
    ANALYZE_ISSUE,
    JUDGE_SENTIMENT,
    SUMMARIZE,
    SUMMARIZE_REPO,
    Question,
    QuestionMaterial,
    article_material,
    issue_material,
    repo_material,
)

A = TypeVar("A", bound=msgspec.Struct)

CACHE: Final = "ai"
TOKENS: Final = "ai.tokens"
COST: Final = "ai.cost_micros"
CACHE_SECONDS: Final = 90 * 86_400
REPO_WORDS: Final = 80
HOLD_SECONDS_MAX: Final = 60.0
WAIT_SECONDS_MAX: Final = 30.0
"""An item that would wait longer for the endpoint goes back to the queue instead of holding its place in the lane."""


class OverBudget(SlowDown):
    """The day's budget has no room for a question: it waits for the next day, visibly, and is not dropped."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What asking an endpoint may cost. Prices are per million tokens; a limit of 0 means only counted."""

    price_in: float = 0.0
    price_out: float = 0.0
    daily_tokens_max: int = 0
    daily_cost_micros_max: int = 0
    concurrency: int = 4
    rate_per_minute: float = 60.0
    falls_back: bool = True
    """Whether the local default answers, marked as such, where the endpoint gives no usable answer."""

    def cost_micros(self, tokens_in: int, tokens_out: int) -> int:
        """Return millionths of the currency: a price per million tokens is as many micros per token."""
        return round(tokens_in * self.price_in + tokens_out * self.price_out)


class MeteredEnricher:
    """Answers the four questions; every answer comes with who gave it and what it cost.

    Without an endpoint the local default answers, free and at once. With one, raise SlowDown (OverBudget, OutOfCredit)
    when the question has to wait, Transient when asking again may help, Permanent when it cannot, and Misconfigured
    when the settings must be fixed.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        endpoint: Endpoint | None = None,
        terms: Terms | None = None,
        clock: Clock | None = None,
        on_tokens: Callable[[str, int, int], None] | None = None,
        pace: Pace | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._ledger = ledger
        self._endpoint = endpoint
        self._terms = terms or Terms()
        self._clock = clock or SystemClock()
        self._on_tokens = on_tokens
        self._pace = pace or Pace(self._terms.rate_per_minute, burst=1)
        self._sleep = sleep
        self._circuit = Circuit("the AI endpoint", answers=(Unusable,), now=lambda: self._clock.now_ms() / 1000)
        self._places = asyncio.Semaphore(self._terms.concurrency)
        self._being_asked: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def summarize(
        self,
        text: str,
        *,
        title: str | None = None,
        description: str | None = None,
        pipeline: str = "",
        words: int = 80,
    ) -> tuple[Summary, Provenance]:
        """Say what a text says, in at most so many words; its page's description helps where it says little."""
        return await self._answer(
            SUMMARIZE,
            article_material(text, title, words, description),
            pipeline,
            lambda: local.summarize(text, title, words, description=description),
        )

    async def judge_sentiment(
        self, text: str, *, title: str | None = None, pipeline: str = ""
    ) -> tuple[Sentiment, Provenance]:
        """Judge whether a text is good or bad news for its subject."""
        return await self._answer(
            JUDGE_SENTIMENT,
            article_material(text, title),
            pipeline,
            lambda: local.judge_sentiment(text, title),
        )

    async def summarize_repo(self, facts: RepoFacts, *, pipeline: str = "") -> tuple[RepoSummary, Provenance]:
        """Say what a repository is for."""
        return await self._answer(
            SUMMARIZE_REPO, repo_material(facts, REPO_WORDS), pipeline, lambda: local.summarize_repo(facts)
        )

    async def analyze_issue(self, facts: IssueFacts, *, pipeline: str = "") -> tuple[IssueAnalysis, Provenance]:
        """Introduce an issue, rate its difficulty and point to where to begin."""
        return await self._answer(ANALYZE_ISSUE, issue_material(facts), pipeline, lambda: local.analyze_issue(facts))

    async def _answer(
        self, question: Question[A], material: QuestionMaterial, pipeline: str, locally: Callable[[], A]
    ) -> tuple[A, Provenance]:
        endpoint = self._endpoint
        if endpoint is None or not material.text.strip():
            return locally(), Provenance(model=local.MODEL)
        key = f"{question.name}.v{question.version}:{endpoint.model}:{material.digest}"
        # Two items with the same text may be worked on at once: the second waits for the first one's answer.
        async with self._being_asked.setdefault(key, asyncio.Lock()):
            stored_answer = await self._remembered(question, key)
            if stored_answer is not None:
                return stored_answer, Provenance(model=endpoint.model, cached=True)
            return await self._ask(endpoint, question, material, key, pipeline, locally)

    async def _ask(
        self,
        endpoint: Endpoint,
        question: Question[A],
        material: QuestionMaterial,
        key: str,
        pipeline: str,
        locally: Callable[[], A],
    ) -> tuple[A, Provenance]:
        tab = Tab()
        try:
            async with self._places, self._budgeted(endpoint, question, material, tab, pipeline):
                await self._wait_for_start()
                with self._circuit.around(key):
                    answer = await endpoint.ask(question, material, tab)
        # Both are a SlowDown too, but of our own making: the endpoint did not ask to slow down.
        except (OverBudget, EndpointDown):
            raise
        except SlowDown as error:
            self._pace.hold(min(error.retry_after_seconds or 0.0, HOLD_SECONDS_MAX))
            raise
        except (Unusable, AnswerRefused, TooLong):
            if not self._terms.falls_back:
                raise
            return locally(), self._provenance(local.MODEL, tab, fell_back=True)
        await self._ledger.put(CACHE, key, msgspec.json.encode(answer), CACHE_SECONDS)
        return answer, self._provenance(endpoint.model, tab)

    async def _wait_for_start(self) -> None:
        """Keep questions evenly apart; raise SlowDown where the wait would be long."""
        wait = self._pace.wait_seconds()
        if wait > WAIT_SECONDS_MAX:
            raise SlowDown("the AI endpoint is asked as often as it may be", retry_after_seconds=wait)
        self._pace.take()
        if wait:
            await self._sleep(wait)

    @asynccontextmanager
    async def _budgeted(
        self, endpoint: Endpoint, question: Question[A], material: QuestionMaterial, tab: Tab, pipeline: str
    ) -> AsyncIterator[None]:
        """Set the worst case aside before the call; write down what was used after it, whatever happened."""
        most = endpoint.tokens_at_most(question, material)
        limits = {TOKENS: (sum(most), self._terms.daily_tokens_max)}
        limits[COST] = (self._terms.cost_micros(*most), self._terms.daily_cost_micros_max)
        reserved = await self._reserve({name: pair for name, pair in limits.items() if pair[1]})
        try:
            yield
        finally:
            # The request was cut off. Counting the worst case may waste some budget; counting nothing could overdraw
            # it.
            if tab.is_unknown:
                tab.tokens_in, tab.tokens_out = max(tab.tokens_in, most[0]), max(tab.tokens_out, most[1])
            # A cancelled item has used its tokens all the same: the shield lets the ledger hear of it.
            await asyncio.shield(self._settle(endpoint.model, reserved, tab, pipeline))

    async def _reserve(self, limits: dict[str, tuple[int, int]]) -> dict[str, int]:
        reserved: dict[str, int] = {}
        for name, (amount, limit) in limits.items():
            if await self._ledger.reserve(name, amount, limit):
                reserved[name] = amount
                continue
            # All or nothing: what one budget has set aside would otherwise be missing for the rest of the day.
            for taken, part in reserved.items():
                await self._ledger.settle(taken, part, 0)
            wait = seconds_left_in_day(self._clock.now_ms())
            raise OverBudget(
                f"the daily budget {name} of {limit} has no room for {amount} more; it starts again at midnight UTC",
                retry_after_seconds=wait,
            )
        return reserved

    async def _settle(self, model: str, reserved: dict[str, int], tab: Tab, pipeline: str) -> None:
        used = {TOKENS: tab.tokens_in + tab.tokens_out, COST: self._terms.cost_micros(tab.tokens_in, tab.tokens_out)}
        for name, amount in used.items():
            if name in reserved:
                await self._ledger.settle(name, reserved[name], amount)
            elif amount:
                await self._ledger.count(name, amount)
            if pipeline and amount:
                await self._ledger.count(f"{name}:{pipeline}", amount)
        if used[TOKENS] and self._on_tokens is not None:
            self._on_tokens(model, tab.tokens_in, tab.tokens_out)

    async def _remembered(self, question: Question[A], key: str) -> A | None:
        stored = await self._ledger.get(CACHE, key)
        if stored is None:
            return None
        try:
            return msgspec.json.decode(stored, type=question.answer)
        except msgspec.DecodeError:
            return None  # Written by an older version of the answer's type: ask again.

    def _provenance(self, model: str, tab: Tab, **more: Any) -> Provenance:  # Any: fields of the Struct.
        cost = self._terms.cost_micros(tab.tokens_in, tab.tokens_out)
        return Provenance(model=model, tokens_in=tab.tokens_in, tokens_out=tab.tokens_out, cost_micros=cost, **more)
