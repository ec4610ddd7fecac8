"""APITube: numbered pages, its own sentiment for every article, one point for every page that holds something."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import SecretStr

from tidings.model.answers import SentimentLabel
from tidings.model.clock import Clock, read_time, seconds_left_in_day
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, Misconfigured, SlowDown, Transient
from tidings.model.pipeline import Page, Run, Schedule
from tidings.model.urls import web_address
from tidings.model.web import Response
from tidings.net.client import raise_for_status
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

WHO = "APITube"
IDENTITY = ("id", "href")
PAGE_BEYOND_PLAN = "ER0173"
SIZE_BEYOND_PLAN = "ER0171"
NO_POINTS = "ER0176"
RATE = frozenset({"ER0203", "ER0204"})
WAIT_SECONDS_MAX = 60.0
"""A rate window that reopens within this time is waited for inside a run."""


class BeyondPlan(Exception):
    """The plan gives no further pages."""


@dataclass(frozen=True)
class ApiTube:
    """The source `bitcoin_news.apitube`."""

    key: SecretStr
    base_url: str
    every_seconds: float
    max_pages: int
    page_size: int
    credits_per_day: int
    language: str
    keep_days: float
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    lists_anew = True
    name = f"{PIPELINE}.apitube"

    @property
    def schedule(self) -> Schedule:
        """When to ask."""
        return Schedule(every_seconds=self.every_seconds)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield pages from the newest down, until one holds something the last completed run had seen."""
        walk = Walk(run, kit, self.keep_days, IDENTITY, sighting)
        for number in range(1, self.max_pages + 1):
            try:
                answer, spent, pause = await self._ask(number, kit)
            except BeyondPlan:
                yield Page((), incomplete=f"the plan gives {number - 1} pages, and there are more")
                return
            page = await walk.page(records(answer, WHO), spent)
            is_last = not answer.get("has_next_pages") or walk.meets_known
            yield page if is_last else cut_off(page, number, self.max_pages)
            if is_last:
                return
            if pause:
                await self._pause(pause)

    async def _ask(self, number: int, kit: Kit) -> tuple[dict[str, Any], int, float]:
        params = {
            "title": "bitcoin",
            "language.code": self.language,
            "sort.by": "published_at",
            "sort.order": "desc",
            "per_page": str(self.page_size),
            "page": str(number),
        }
        headers = {"Authorization": f"Bearer {self.key.get_secret_value()}"}
        async with one_credit(kit, self.name, self.credits_per_day) as charge:
            # The answer names its next page as an http address; we keep to our own and count.
            url = f"{self.base_url.rstrip('/')}/news/everything"
            response = await kit.fetcher.call("GET", url, headers=headers, params=params)
            charge.spent = 0 if response.status != 200 else 1
            answer = check(response, number, kit.clock)
            charge.spent = 1 if answer.get("results") else 0
        check_echo(answer, params)
        return answer, charge.spent, _pause_wanted(response.headers)

    async def _pause(self, seconds: float) -> None:
        if seconds > WAIT_SECONDS_MAX:
            raise SlowDown(f"{WHO} has no requests left in this window", retry_after_seconds=seconds)
        await self.sleep(seconds)


def check(response: Response, page: int, clock: Clock) -> dict[str, Any]:
    """Return the answer if it is one, else raise what its status and error code mean."""
    if response.status >= 500:
        raise_for_status(response, WHO)
    try:
        answer = json_object(response, WHO)
    except Transient:
        raise_for_status(response, WHO)
        raise
    if response.status == 200 and answer.get("status") == "ok":
        return answer
    code, message = _trouble(answer)
    complaint = f"{WHO} answered {response.status} {code}: {message}"
    if code == PAGE_BEYOND_PLAN and page > 1:
        raise BeyondPlan(complaint)
    if code == SIZE_BEYOND_PLAN:
        raise Misconfigured(f"{complaint}; set apitube_page_size to what your plan allows (10, 50 or 250)")
    if code == NO_POINTS or response.status == 402:
        raise SlowDown(complaint, retry_after_seconds=seconds_left_in_day(clock.now_ms()))
    if code in RATE or response.status == 429:
        raise SlowDown(complaint, retry_after_seconds=_number(response.headers, "x-ratelimit-reset") or 60.0)
    if 400 <= response.status < 500:
        raise Misconfigured(f"{complaint}; check the key and the settings of {PIPELINE}")
    raise Transient(complaint)


def check_echo(answer: Mapping[str, Any], params: Mapping[str, str]) -> None:
    """Refuse an answer to another question: parameters it does not know are ignored silently, and all news comes."""
    path = answer.get("path")
    if not isinstance(path, str) or "?" not in path:
        return
    echo = parse_qs(urlsplit(path).query)
    for name in ("title", "language.code"):
        if echo.get(name) != [params[name]]:
            raise Misconfigured(f"{WHO} ignored the parameter {name}: the answer would be all news of the world")


def _pause_wanted(headers: Mapping[str, str]) -> float:
    """Return how long to wait before the next request: the reset header counts seconds, it is no time of day."""
    if _number(headers, "x-ratelimit-remaining") == 0:
        return _number(headers, "x-ratelimit-reset") or WAIT_SECONDS_MAX
    return 0.0


def _number(headers: Mapping[str, str], name: str) -> float | None:
    try:
        number = float(headers.get(name, ""))
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _trouble(answer: dict[str, Any]) -> tuple[str, str]:
    errors = answer.get("errors")
    first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
    return str(first.get("code") or "")[:20], str(first.get("message") or "no reason given")[:200]


def sighting(record: Any, now_ms: int) -> Sighting:
    """Read one record of the answer, or raise BadInput."""
    if not isinstance(record, dict):
        raise BadInput("the record is no object")
    outlet = _inside(record, "source")
    link, title = web_address(record.get("href")), title_of(record.get("title"), None)
    if link is None or title is None:
        raise BadInput(f"article {identity(record, IDENTITY)} has no {'web address' if link is None else 'title'}")
    label, score = _sentiment(record)
    return Sighting(
        provider="apitube",
        provider_id=identity(record, IDENTITY),
        link=link,
        title=title,
        seen_ms=now_ms,
        description=real_text(record.get("description"), DESCRIPTION_CHARS_MAX),
        source=real_text(outlet.get("domain"), 100),
        author=author_of(_inside(record, "author").get("name")),
        image=web_address(real_text(record.get("image"), 2000)),
        language=real_text(record.get("language"), 20),
        categories=real_list([entry.get("name") for entry in _entries(record, "topics")]),
        published_ms=read_time(record.get("published_at"), zone=None),
        sentiment=label,
        sentiment_score=score,
    )


def _sentiment(record: dict[str, Any]) -> tuple[SentimentLabel | None, float | None]:
    overall = _inside(_inside(record, "sentiment"), "overall")
    label = next((label for label in SENTIMENTS if label == overall.get("polarity")), None)
    score = overall.get("score")
    if label is None or isinstance(score, bool) or not isinstance(score, int | float) or not -1 <= score <= 1:
        return label, None
    return label, float(score)


def _inside(record: dict[str, Any], name: str) -> dict[str, Any]:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _entries(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = record.get(name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
