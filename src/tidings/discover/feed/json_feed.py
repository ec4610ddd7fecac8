"""Reads JSON Feed into the same nouns as the XML formats."""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.discover.feed.entry import (
    CATEGORIES_MAX,
    ENTRIES_MAX,
    ID_CHARS_MAX,
    NAME_CHARS_MAX,
    SUMMARY_CHARS_MAX,
    TIME_MS_MAX,
    TITLE_CHARS_MAX,
    FeedEntry,
    ParsedFeed,
    content_id,
    newest_first,
    sift,
)
from tidings.discover.feed.errors import NotAFeed
from tidings.discover.feed.markup import clean_html, first_image, one_line, paragraphs, plain_text
from tidings.discover.feed.text import CHARS_MAX, too_many
from tidings.model.clock import read_time
from tidings.model.urls import shown_url, web_address

VERSION_MARK = "jsonfeed.org/version/"


def parse_json_feed(text: str, url: str) -> ParsedFeed:
    """Read a JSON Feed, or raise NotAFeed."""
    if len(text) > CHARS_MAX:
        raise NotAFeed(f"{shown_url(url)} is a JSON document of more than {CHARS_MAX} characters")
    try:
        document = msgspec.json.decode(text.lstrip("\ufeff \t\r\n").encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotAFeed(f"{shown_url(url)} answered with broken JSON, not a feed") from error
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise NotAFeed(f"{shown_url(url)} answered with JSON that is no JSON Feed: it has no list of items")
    version = str(document.get("version") or "")
    _, _, number = version.partition(VERSION_MARK)
    home = web_address(document.get("home_page_url"), url)
    language = _text(document, "language", 20).lower() or None
    base = home or url
    chosen = newest_first(_published_ms(item) for item in items)[:ENTRIES_MAX]
    sifted = sift(_entry(items[place], base, language) for place in sorted(chosen))
    return ParsedFeed(
        url=url,
        format=f"json{number.replace('.', '')[:4]}",
        title=_text(document, "title", TITLE_CHARS_MAX),
        entries=sifted.entries,
        home=home,
        language=language,
        repeated=sifted.repeated,
        empty=sifted.empty,
        left_out=too_many(len(items), len(chosen)),
    )


def _entry(item: Any, base: str, language: str | None) -> FeedEntry | None:
    if not isinstance(item, dict):
        return None
    address = web_address(item.get("url"), base) or web_address(item.get("external_url"), base)
    html, plain = _raw(item, "content_html"), _raw(item, "content_text")
    updated = _time_ms(item.get("date_modified"))
    published = _published_ms(item)
    title = _text(item, "title", TITLE_CHARS_MAX)
    summary = plain_text(_raw(item, "summary") or html or plain, SUMMARY_CHARS_MAX)
    identity = _identity(item.get("id")) or address or content_id(title, summary, published)
    if identity is None:
        return None
    return FeedEntry(
        id=identity,
        url=address or web_address(identity if "://" in identity else None, base),
        title=title,
        summary_text=summary,
        content_html=clean_html(html, address or base) if html else paragraphs(plain),
        author=_author(item),
        published_ms=published,
        updated_ms=updated,
        image=web_address(item.get("image") or item.get("banner_image"), base) or first_image(html, address or base),
        categories=_tags(item.get("tags")),
        language=_text(item, "language", 20).lower() or language,
    )


def _published_ms(item: Any) -> int | None:
    if not isinstance(item, dict):
        return None
    published = _time_ms(item.get("date_published"))
    return published if published is not None else _time_ms(item.get("date_modified"))


def _identity(value: Any) -> str | None:
    """Accept numbers too: older feeds have them."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip()[:ID_CHARS_MAX] or None


def _raw(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""


def _text(item: dict[str, Any], name: str, limit: int) -> str:
    return one_line(_raw(item, name), limit)


def _author(item: dict[str, Any]) -> str | None:
    authors = item.get("authors")
    people = authors if isinstance(authors, list) else [item.get("author")]
    names = [_text(person, "name", NAME_CHARS_MAX) for person in people[:10] if isinstance(person, dict)]
    return ", ".join(name for name in names if name and "@" not in name)[:NAME_CHARS_MAX] or None


def _tags(value: Any) -> tuple[str, ...]:
    tags = (one_line(tag, 100) for tag in value[:200] if isinstance(tag, str)) if isinstance(value, list) else ()
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:CATEGORIES_MAX]


def _time_ms(value: Any) -> int | None:
    ms = read_time(value)
    return ms if ms is not None and 0 < ms <= TIME_MS_MAX else None
