"""What one look at a list of entries brought, whatever the list is written in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from tidings.discover.feed.entry import (
    CATEGORIES_MAX,
    ID_CHARS_MAX,
    NAME_CHARS_MAX,
    SUMMARY_CHARS_MAX,
    TITLE_CHARS_MAX,
    FeedEntry,
    content_id,
)
from tidings.discover.feed.markup import clean_html, first_image, one_line, paragraphs, plain_text
from tidings.discover.times import time_ms
from tidings.model.contracts import Kit
from tidings.model.errors import Transient
from tidings.model.harmless import storable
from tidings.model.item import Rejected
from tidings.model.urls import web_address

TEXT_CHARS_MAX = 200_000


class UnexpectedContent(Transient):
    """What came back is not what the options describe; the message says which one found nothing."""


@dataclass(frozen=True, slots=True)
class EntryListing:
    """The entries that a look found, the newest first."""

    entries: tuple[FeedEntry, ...]
    title: str | None = None
    note: str | None = None
    rejected: tuple[Rejected, ...] = ()
    incomplete: str | None = None
    """What was there and was not read."""
    cursor: Any = None
    """What the next look has to know."""


@dataclass(frozen=True, slots=True)
class ListingLook:
    """What a reader is told of the look it makes."""

    now_ms: int
    cursor: Any = None


ReadListing = Callable[[Kit, str, ListingLook], Awaitable[EntryListing]]
"""Reads the list at an address."""


class RawEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry as a page says it, before anything is judged."""

    title: str = ""
    url: str = ""
    id: str = ""
    text: str = ""
    is_html: bool = False
    author: str = ""
    published: str = ""
    image: str = ""
    tags: list[str] = []


def entry_of(raw: RawEntry, base: str) -> FeedEntry | None:
    """Return the entry; None where it has neither words nor an address."""
    text = storable(raw.text[:TEXT_CHARS_MAX])
    title = one_line(storable(raw.title), TITLE_CHARS_MAX)
    url = web_address(raw.url.strip(), base) if raw.url.strip() else None
    published = time_ms(raw.published) if raw.published else None
    words = plain_text(text, SUMMARY_CHARS_MAX)
    identity = storable(raw.id).strip()[:ID_CHARS_MAX] or url or content_id(title, words, published)
    if identity is None or not (title or words or url):
        return None
    return FeedEntry(
        id=identity,
        url=url,
        title=title,
        summary_text=words,
        content_html=clean_html(text, url or base) if raw.is_html and "<" in text else paragraphs(text),
        author=one_line(storable(raw.author), NAME_CHARS_MAX) or None,
        published_ms=published,
        image=web_address(raw.image, base) if raw.image else first_image(text, url or base),
        categories=tuple(dict.fromkeys(one_line(storable(tag), 100) for tag in raw.tags))[:CATEGORIES_MAX],
    )
