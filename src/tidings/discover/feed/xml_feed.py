"""Reads RSS and Atom, well-formed or not."""

from __future__ import annotations

import calendar
import io
from typing import Any

import feedparser

from tidings.discover.feed.entry import (
    CATEGORIES_MAX,
    CHECK_SECONDS_MAX,
    ID_CHARS_MAX,
    NAME_CHARS_MAX,
    SUMMARY_CHARS_MAX,
    TIME_MS_MAX,
    TITLE_CHARS_MAX,
    FeedEntry,
    ParsedFeed,
    content_id,
    number_of,
    seconds,
    sift,
)
from tidings.discover.feed.errors import NotAFeed
from tidings.discover.feed.markup import clean_html, first_image, one_line, plain_text
from tidings.discover.feed.text import without_surprises
from tidings.model.urls import shown_url, web_address

_PERIOD_SECONDS = {"hourly": 3600, "daily": 86_400, "weekly": 604_800, "monthly": 2_592_000, "yearly": 31_536_000}


def parse_xml_feed(text: str, url: str) -> ParsedFeed:
    """Read RSS or Atom, or raise NotAFeed."""
    safe, left_out = without_surprises(text, url)
    return _from_parsed(_parsed(safe, url), url, left_out)


def _parsed(text: str, url: str) -> Any:
    headers = {"content-type": "application/xml; charset=utf-8"}
    # A stream of bytes is the one argument the parser never mistakes for an address or a file to open.
    stream = io.BytesIO(text.encode("utf-8", "replace"))
    try:
        return feedparser.parse(stream, response_headers=headers, resolve_relative_uris=False, sanitize_html=False)
    except Exception as error:  # The parser fails in as many ways as there are broken feeds.
        raise NotAFeed(f"{shown_url(url)} cannot be read as a feed ({type(error).__name__})") from error


def _from_parsed(parsed: Any, url: str, left_out: str | None) -> ParsedFeed:
    about = parsed["feed"]
    home = web_address(about.get("link"), url)
    base = home or url
    language = _language(about.get("language"))
    sifted = sift(_entry(raw, base, language) for raw in parsed["entries"])
    if not parsed["entries"] and not about and not parsed.get("version"):
        raise NotAFeed(f"{shown_url(url)} holds no feed that could be read")
    flaw = parsed.get("bozo_exception")
    return ParsedFeed(
        url=url,
        format=parsed.get("version") or "unknown",
        title=one_line(about.get("title", ""), TITLE_CHARS_MAX),
        entries=sifted.entries,
        home=home,
        language=language,
        ttl_seconds=seconds(about.get("ttl"), 60),
        update_seconds=_update_seconds(about),
        repeated=sifted.repeated,
        empty=sifted.empty,
        left_out=left_out,
        flaw=str(flaw)[:200] if flaw else None,
    )


def _entry(raw: Any, base: str, language: str | None) -> FeedEntry | None:
    url = _address(raw, base)
    summary, content = _markup(raw)
    published, updated = _time_ms(raw, "published_parsed"), _time_ms(raw, "updated_parsed")
    published = published if published is not None else updated
    title, words = one_line(raw.get("title", ""), TITLE_CHARS_MAX), plain_text(summary or content, SUMMARY_CHARS_MAX)
    identity = str(raw.get("id") or "").strip()[:ID_CHARS_MAX] or url or content_id(title, words, published)
    if identity is None:
        return None
    entry_base = url or base
    return FeedEntry(
        id=identity,
        url=url,
        title=title,
        summary_text=words,
        content_html=clean_html(content or summary, entry_base),
        author=_author(raw),
        published_ms=published,
        updated_ms=updated,
        image=_image(raw, base) or first_image(content or summary, entry_base),
        categories=_categories(raw),
        language=_language(dict.get(raw, "language") or _detail(raw, "title", "language")) or language,
    )


def _address(raw: Any, base: str) -> str | None:
    """Return the entry's page: the original behind a counting service, else the link, else an address as guid."""
    guid, link = str(raw.get("id") or "").strip(), raw.get("link")
    candidates = [raw.get("feedburner_origlink"), link if link != guid else None]
    # By the letter of RSS every guid is an address unless it says otherwise; in the wild `1` means the number.
    if guid.lower().startswith(("http://", "https://")):
        candidates.append(guid)
    # A recording without a page of its own is its own page.
    candidates += [link.get("href") for link in raw.get("links", [])[:20] if link.get("rel") == "enclosure"]
    return next((found for url in candidates if (found := web_address(url, base))), None)


def _markup(raw: Any) -> tuple[str, str]:
    """Return the entry's summary and its full content as HTML; either may be empty."""
    contents = [str(part.get("value") or "") for part in raw.get("content", []) if _is_text(part.get("type"))]
    content = max(contents, key=len, default="")
    summary = str(raw.get("summary") or "")
    if content and summary and len(summary) > len(content):
        # Some outlets put the whole article into the description and a teaser into the content.
        summary, content = content, summary
    return summary, content


def _is_text(media_type: str | None) -> bool:
    return media_type is None or media_type.startswith("text/") or "html" in media_type


def _author(raw: Any) -> str | None:
    names = [one_line(str(author.get("name") or ""), NAME_CHARS_MAX) for author in raw.get("authors", []) if author]
    kept = list(dict.fromkeys(name for name in names if name and "@" not in name))
    return ", ".join(kept[:10])[:NAME_CHARS_MAX] or None


def _image(raw: Any, base: str) -> str | None:
    candidates: list[Any] = []
    for part in [*raw.get("media_content", []), *raw.get("media_thumbnail", [])]:
        kind = str(part.get("type") or part.get("medium") or "image")
        if kind.startswith("image"):
            candidates.append(part.get("url"))
    candidates += [
        link.get("href")
        for link in raw.get("links", [])
        if link.get("rel") == "enclosure" and str(link.get("type", "")).startswith("image/")
    ]
    image = raw.get("image")
    if isinstance(image, dict):
        candidates.append(image.get("href"))
    return next((found for url in candidates[:20] if (found := web_address(url, base))), None)


def _categories(raw: Any) -> tuple[str, ...]:
    terms = (one_line(str(tag.get("label") or tag.get("term") or ""), 100) for tag in raw.get("tags", [])[:200])
    return tuple(dict.fromkeys(term for term in terms if term))[:CATEGORIES_MAX]


def _time_ms(raw: Any, field: str) -> int | None:
    # Plain dictionary access: the parser's own would answer one date for another, with a warning.
    parsed = dict.get(raw, field)
    if parsed is None:
        return None
    try:
        ms = calendar.timegm(parsed) * 1000
    except (ValueError, OverflowError, TypeError):
        return None
    return ms if 0 < ms <= TIME_MS_MAX else None


def _detail(raw: Any, field: str, name: str) -> Any:
    return (dict.get(raw, f"{field}_detail") or {}).get(name)


def _language(value: Any) -> str | None:
    text = str(value or "").strip().lower().replace("_", "-")
    return text if 2 <= len(text) <= 20 and text.replace("-", "").isalnum() else None


def _update_seconds(about: Any) -> float | None:
    period = _PERIOD_SECONDS.get(str(about.get("sy_updateperiod") or "").strip().lower())
    if period is None:
        return None
    frequency = number_of(about.get("sy_updatefrequency")) or 1.0
    return min(period / frequency, CHECK_SECONDS_MAX)
