"""NewsData.io: news on Bitcoin, page by page behind an opaque token, one credit a page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import SecretStr

from tidings.model.answers import SentimentLabel
from tidings.model.clock import Clock, read_time, seconds_left_in_day
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, Misconfigured, SlowDown, Transient
from tidings.model.pipeline import Page, Run, Schedule
from tidings.model.urls import web_address
from tidings.model.web import Response
from tidings.net.client import raise_for_status, retry_after_seconds
from tidings.pipelines.bitcoin_news.body import PIPELINE, SENTIMENTS, Sighting
from tidings.pipelines.bitcoin_news.client import (
    Walk,
    cut_off,
    identity,
    json_object,
    one_credit,
    records,
)
from tidings.pipelines.bitcoin_news.sightings import (
    DESCRIPTION_CHARS_MAX,
    author_of,
    real_list,
    real_text,
    title_of,
)

WHO = "NewsData.io"
IDENTITY = ("article_id", "link")
WINDOW_SECONDS = 900.0
"""The rate window reopens a quarter of an hour after it was exceeded."""
LANGUAGES = {"english": "en", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt"}


@dataclass(frozen=True)
class NewsData:
    """The source `bitcoin_news.newsdata`."""

    key: SecretStr
    base_url: str
    every_seconds: float
    max_pages: int
    page_size: int
    credits_per_day: int
    language: str
    keep_days: float
    pause_seconds: float = 1.0
    """The vendor's own client waits a second between pages."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    lists_anew = True
    name = f"{PIPELINE}.newsdata"

    @property
    def schedule(self) -> Schedule:
        """When to ask."""
        return Schedule(every_seconds=self.every_seconds)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield pages from the newest down, until one holds something the last completed run had seen."""
        walk = Walk(run, kit, self.keep_days, IDENTITY, sighting)
        token: str | None = None
        tokens: set[str] = set()
        for number in range(1, self.max_pages + 1):
            if number > 1:
                await self.sleep(self.pause_seconds)
            answer, spent = await self._ask(token, kit)
            token = real_text(answer.get("nextPage"), 200)
            page = await walk.page(records(answer, WHO), spent)
            if token is None or walk.meets_known:
                yield page
                return
            if token in tokens:
                yield replace(page, incomplete=f"{WHO} repeats its pages: {number} were read")
                return
            tokens.add(token)
            yield cut_off(page, number, self.max_pages)

    async def _ask(self, token: str | None, kit: Kit) -> tuple[dict[str, Any], int]:
        params = {"coin": "btc", "language": self.language, "size": str(self.page_size), "removeduplicate": "1"}
        if token is not None:
            params["page"] = token
        # The key travels in a header: addresses end up in logs.
        headers = {"X-ACCESS-KEY": self.key.get_secret_value()}
        async with one_credit(kit, self.name, self.credits_per_day) as charge:
            url = f"{self.base_url.rstrip('/')}/crypto"
            response = await kit.fetcher.call("GET", url, headers=headers, params=params)
            charge.spent = 1 if response.status == 200 else 0
            return check(response, kit.clock), charge.spent


def check(response: Response, clock: Clock) -> dict[str, Any]:
    """Return the answer if it is one, else raise what its status and error code mean."""
    if response.status >= 500:
        raise_for_status(response, WHO)
    if response.status == 429:
        raise _slow_down(response, clock)
    answer = json_object(response, WHO)
    if response.status == 200 and answer.get("status") == "success":
        return answer
    code, message = _trouble(answer)
    complaint = f"{WHO} answered {response.status} {code}: {message}"
    if response.status == 422 and "size" in message.lower():
        remedy = "set newsdata_page_size to what your plan allows (10 on the free plan, 50 on the others)"
        raise Misconfigured(f"{complaint}; {remedy}")
    if response.status == 422 and "page" in message.lower():
        raise Transient(f"{complaint}; the next run starts from the first page")
    if 400 <= response.status < 500:
        raise Misconfigured(f"{complaint}; check the key and the settings of {PIPELINE}")
    raise Transient(complaint)


def _slow_down(response: Response, clock: Clock) -> SlowDown:
    try:
        code, message = _trouble(json_object(response, WHO))
    except Transient:
        code, message = "", "too many requests"
    wait = retry_after_seconds(response.headers, clock.now_ms() / 1000) or WINDOW_SECONDS
    if code == "ApiLimitExceeded":
        wait = seconds_left_in_day(clock.now_ms())
    return SlowDown(f"{WHO}: {message}", retry_after_seconds=wait)


def _trouble(answer: dict[str, Any]) -> tuple[str, str]:
    """Read an error in either of its two forms."""
    results = answer.get("results")
    inner = results if isinstance(results, dict) else answer
    return str(inner.get("code") or "")[:60], str(inner.get("message") or "no reason given")[:200]


def sighting(record: Any, now_ms: int) -> Sighting:
    """Read one record of the answer, or raise BadInput."""
    if not isinstance(record, dict):
        raise BadInput("the record is no object")
    source = real_text(record.get("source_name"), 100) or real_text(record.get("source_id"), 100)
    link, title = web_address(record.get("link")), title_of(record.get("title"), source)
    if link is None or title is None:
        raise BadInput(f"article {identity(record, IDENTITY)} has no {'web address' if link is None else 'title'}")
    label = _label(record.get("sentiment"))
    language = real_text(record.get("language"), 40)
    return Sighting(
        provider="newsdata",
        provider_id=identity(record, IDENTITY),
        link=link,
        title=title,
        seen_ms=now_ms,
        description=real_text(record.get("description"), DESCRIPTION_CHARS_MAX),
        source=source,
        author=author_of(next(iter(real_list(record.get("creator"))), None)),
        image=web_address(real_text(record.get("image_url"), 2000)),
        language=LANGUAGES.get(language.lower(), language.lower()) if language else None,
        categories=real_list(record.get("keywords")) or real_list(record.get("category")),
        published_ms=read_time(record.get("pubDate"), zone=zone_of(record.get("pubDateTZ"))),
        sentiment=label,
        sentiment_score=_score(record.get("sentiment_stats")) if label else None,
    )


def zone_of(name: Any) -> tzinfo:
    """Return the zone of a record's times, which stands in a field of its own; UTC where it cannot be known."""
    if not isinstance(name, str) or name.upper() in ("", "UTC", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # ZoneInfo looks names up as files.
        return UTC


def _label(value: Any) -> SentimentLabel | None:
    return next((label for label in SENTIMENTS if label == value), None)


def _score(stats: Any) -> float | None:
    """Turn percentages into one number between -1 and 1."""
    if not isinstance(stats, dict):
        return None
    shares = [stats.get("positive"), stats.get("negative")]
    if not all(isinstance(share, int | float) and 0 <= share <= 100 for share in shares):
        return None
    positive, negative = (float(share) for share in shares if share is not None)
    return round((positive - negative) / 100, 3)
