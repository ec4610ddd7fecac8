"""What NewsData.io and APITube answer, field for field."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import md5
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

if TYPE_CHECKING:
    from tidings.sample.news import Outlet, Story

Listed = Sequence[tuple["Story", "Outlet", str]]

PAID = "ONLY AVAILABLE IN PAID PLANS"
PROFESSIONAL = "ONLY AVAILABLE IN PROFESSIONAL AND CORPORATE PLANS"
CORPORATE = "ONLY AVAILABLE IN CORPORATE PLANS"
FIRST_TOKEN = 1_738_378_824_597_020_000
FREE_PAGES = 5


@dataclass
class Account:
    """A customer's key and what is left on it."""

    key: str
    credits: int
    plan: str = "free"
    requests: int = 0
    requests_left: int = 1_000_000
    """Of the current rate window."""
    reset_seconds: int = 37
    repeats_its_token: bool = False
    """NewsData.io's token leads to the page it came with."""

    @property
    def page_size_max(self) -> int:
        """How many articles a page may hold."""
        return 10 if self.plan == "free" else 50


def newsdata_answer(account: Account, endpoint: str, request: Request, listed: Listed) -> tuple[int, dict[str, Any]]:
    """Answer `crypto` or `latest`."""
    account.requests += 1
    params = request.query_params
    key = request.headers.get("x-access-key") or params.get("apikey")
    if not key:
        return _newsdata_error(400, "ParameterMissing", "The apikey parameter is missing.")
    if key != account.key:
        return _newsdata_error(401, "Unauthorized", "The provided API key is not valid. Please check your API key.")
    if endpoint not in ("crypto", "latest", "news"):
        return _newsdata_error(404, "NotFound", "The requested endpoint does not exist.")
    size = _integer(params.get("size"), 10)
    if not 1 <= size <= account.page_size_max:
        message = f"The size parameter must be between 1 and {account.page_size_max} for your plan."
        return _newsdata_error(422, "UnsupportedFilter", message)
    token = params.get("page")
    offset = _integer(token, FIRST_TOKEN) - FIRST_TOKEN
    if offset < 0 or offset > len(listed):
        return _newsdata_error(422, "UnsupportedFilter", "The provided value for the next page is invalid.")
    if account.credits < 1:
        return _newsdata_error(429, "ApiLimitExceeded", "Your API credits are exhausted for today.")
    account.credits -= 1
    here = listed[offset : offset + size]
    more = offset + size < len(listed)
    return 200, {
        "status": "success",
        "totalResults": len(listed),
        "results": [_newsdata_record(story, outlet, link, account.plan) for story, outlet, link in here],
        "nextPage": str(FIRST_TOKEN + (size if account.repeats_its_token else offset + size)) if more else None,
    }


def _newsdata_record(story: Story, outlet: Outlet, link: str, plan: str) -> dict[str, Any]:
    moment = datetime.fromtimestamp(story.published_ms / 1000, UTC)
    paid = plan != "free"
    sentiment = story.provider_sentiment or "neutral"
    shares = {"positive": 10.0, "neutral": 10.0, "negative": 10.0} | {sentiment: 80.0}
    return {
        "article_id": newsdata_id(story),
        "link": link,
        "title": story.title,
        "description": story.description,
        "content": "\n".join(story.paragraphs) if paid else PAID,
        "keywords": list(story.tags) or None,
        "creator": [story.author] if story.author else None,
        "coin": ["btc"],
        "language": "english",
        "country": [outlet.country],
        "category": ["business"],
        "datatype": "news",
        "pubDate": moment.strftime("%Y-%m-%d %H:%M:%S"),
        "pubDateTZ": "UTC",
        "fetched_at": moment.strftime("%Y-%m-%d %H:%M:%S"),
        "image_url": None,
        "video_url": None,
        "source_id": outlet.id,
        "source_name": outlet.name,
        "source_priority": 50213,
        "source_url": f"https://{outlet.host}",
        "source_icon": None,
        "sentiment": sentiment if paid else PROFESSIONAL,
        "sentiment_stats": shares if paid else PROFESSIONAL,
        "ai_tag": ["cryptocurrency"] if paid else PROFESSIONAL,
        "ai_region": None if paid else CORPORATE,
        "ai_org": None if paid else CORPORATE,
        "ai_summary": story.description if paid else PAID,
        "duplicate": False,
    }


def newsdata_id(story: Story) -> str:
    """Return the id NewsData.io gives a story: 32 hexadecimal digits."""
    return md5(f"newsdata {story.id}".encode(), usedforsecurity=False).hexdigest()


def apitube_id(story: Story) -> int:
    """Return the id APITube gives a story: a number beyond 31 bits."""
    return 3_000_000_000 + int(md5(story.id.encode(), usedforsecurity=False).hexdigest()[:7], 16)


def _newsdata_error(status: int, code: str, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"status": "error", "results": {"message": message, "code": code}}


def apitube_answer(
    account: Account, request: Request, params: Mapping[str, str], listed: Listed
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Answer `news/everything`. Parameters it does not know it ignores, as the real one does."""
    account.requests += 1
    account.requests_left -= 1
    headers = {
        "X-RateLimit-Limit": "10",
        "X-RateLimit-Remaining": str(max(account.requests_left, 0)),
        "X-RateLimit-Reset": str(account.reset_seconds),
    }
    refusal = _apitube_refusal(account, request, params)
    if refusal is not None:
        return *refusal, headers
    size, page = _integer(params.get("per_page"), 10), _integer(params.get("page"), 1)
    here = listed[(page - 1) * size : page * size]
    account.credits -= 1 if here else 0
    more = page * size < len(listed)
    shown = str(request.url.include_query_params(page=page))  # Always http, whatever was asked.
    dated = any(name.startswith("published_at.") for name in params)
    return (
        200,
        _warning("title" in params and not dated)
        | {
            "status": "ok",
            "limit": size,
            "path": shown,
            "page": page,
            "has_next_pages": more,
            "next_page": str(request.url.include_query_params(page=page + 1)) if more else "",
            "has_previous_page": page > 1,
            "previous_page": str(request.url.include_query_params(page=page - 1)) if page > 1 else "",
            "export": {form: f"{shown}&export={form}" for form in ("json", "xlsx", "csv", "tsv", "xml", "rss")},
            "request_id": "00000000-0000-4000-8000-000000000000",
            "results": [_apitube_record(story, outlet, link, account.plan) for story, outlet, link in here],
        },
        headers,
    )


def _warning(wanted: bool) -> dict[str, Any]:
    """Say that a search by title without dates looks back for 31 days only."""
    warning = {"code": "ER0366", "message": "Title search is limited to the last 31 days."}
    return {"meta": {"warnings": [warning]}} if wanted else {}


def _apitube_refusal(
    account: Account, request: Request, params: Mapping[str, str]
) -> tuple[int, dict[str, Any]] | None:
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    key = bearer or request.headers.get("x-api-key") or params.get("api_key")
    size, page = _integer(params.get("per_page"), 10), _integer(params.get("page"), 1)
    if not key:
        return _apitube_error(400, "ER0200", "API key is required.")
    if key != account.key:
        return _apitube_error(401, "ER0202", "API key is invalid.")
    if account.requests_left < 0:
        return _apitube_error(429, "ER0203", f"Rate limit exceeded. Try again in {account.reset_seconds} seconds.")
    if account.credits < 1:
        return _apitube_error(402, "ER0176", "You have no points on your account.")
    if not 1 <= size <= account.page_size_max:
        message = f"Limit is out of range. Your plan allows up to {account.page_size_max} results per page."
        return _apitube_error(400, "ER0171", message)
    if page < 1 or (account.plan == "free" and page > FREE_PAGES):
        return _apitube_error(400, "ER0173", "Page is out of range.")
    if len(params.get("language.code", "en").split(",")[0]) != 2:
        return _apitube_error(400, "ER0061", "language.code must be a two-letter code.")
    return None


def _apitube_record(story: Story, outlet: Outlet, link: str, plan: str) -> dict[str, Any]:
    number = apitube_id(story)
    text = " ".join(p for p in story.paragraphs if not p.startswith("## "))
    body = text if plan != "free" else f"{text[:200]} [Upgrade subscription plan]"
    score = {"positive": 0.42, "negative": -0.42, "neutral": 0.02}.get(story.provider_sentiment or "")
    judged = {"score": score, "polarity": story.provider_sentiment}
    words = len(text.split())
    return {
        "id": number,
        "href": link,
        "published_at": datetime.fromtimestamp(story.published_ms / 1000, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z"),
        "title": story.title,
        "description": story.description or "",
        "body": body,
        "body_html": f"<p>{body}</p>",
        "language": story.language,
        "translations": {story.language: {"title": None, "description": None}},
        "author": {"id": number - 2_999_000_000 if story.author else None, "name": story.author},
        "image": "",
        "categories": [],
        "topics": [{"id": f"industry.{tag}", "name": tag, "score": 0.9, "links": {"self": ""}} for tag in story.tags],
        "industries": [],
        "entities": [],
        "locations_mentioned": [],
        "source": {
            "id": 4200,
            "domain": outlet.host,
            "home_page_url": f"https://{outlet.host}",
            "type": "news",
            "bias": "center",
            "rankings": {"opr": 5},
            "location": {"country_name": outlet.country.title(), "country_code": outlet.country[:2]},
            "favicon": f"https://{outlet.host}/favicon.ico",
        },
        "sentiment": {"overall": judged, "title": judged, "body": judged},
        "summary": [{"sentence": story.description or story.title, "sentiment": judged}],
        "keywords": [],
        "links": [],
        "media": [],
        "readability": {"flesch_kincaid_grade": 11, "difficulty_level": "advanced"},
        "story": {"id": number, "uri": f"https://api.apitube.io/v1/news/story/{number}"},
        "shares": {"total": 0, "facebook": 0, "twitter": 0, "reddit": 0},
        "is_duplicate": False,
        "is_free": True,
        "is_breaking": False,
        "read_time": math.ceil(words / 230),
        "sentences_count": text.count("."),
        "paragraphs_count": len(story.paragraphs),
        "words_count": words,
        "characters_count": len(text),
    }


def _apitube_error(status: int, code: str, message: str) -> tuple[int, dict[str, Any]]:
    error = {
        "status": status,
        "code": code,
        "message": message,
        "links": {"about": "https://docs.apitube.io/platform/news-api/http-response-codes"},
        "timestamp": "2026-08-15T06:39:23.000Z",
    }
    return status, {"status": "not_ok", "request_id": "00000000-0000-4000-8000-000000000000", "errors": [error]}


def _integer(text: str | None, otherwise: int) -> int:
    if text is None:
        return otherwise
    return int(text) if text.isdigit() and len(text) < 25 else -1
