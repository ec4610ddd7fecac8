"""An entry of any feed: what is remembered of it while it is worked on."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

import msgspec

from tidings.discover.feed import FeedEntry
from tidings.discover.feed.markup import plain_text, shorten
from tidings.model.answers import Provenance
from tidings.model.item import Finding, fingerprint
from tidings.model.pipeline import Run
from tidings.model.source_definition import SourceDefinition

PIPELINE = "feeds"
KIND = "entry"
TEXT_CHARS_MAX = 10_240
"""As much is summarized and searched."""


class EntryBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered of an entry."""

    feed: str
    """The feed's short name, as in its source's name."""
    feed_title: str
    id: str
    title: str
    url: str | None = None
    author: str | None = None
    feed_text: str = ""
    """The text that the feed itself carries."""
    content_html: str = ""
    """All there is to read, sanitized: the feed's own, or the page's where that tells more."""
    tags: list[str] = []
    language: str | None = None
    published_ms: int | None = None
    """None where the feed gives no date."""
    found_at: int = 0
    is_baseline: bool = False
    """It stood there at the first look, without a date: nobody can know whether it is news."""
    full_text: bool = True
    """Whether the page behind the entry is to be read."""
    labels: tuple[str, ...] = ()
    category: str | None = None
    """Of its source, when it was found."""
    announced_for_ms: int | None = None
    """How old it may be when it is announced; None: as usual."""

    text: str = ""
    text_from: Literal["feed", "page"] = "feed"
    page_error: str | None = None
    """Why the text is the feed's although the page was wanted."""
    page_tries: int = 0
    """How often the page showed something else than an article."""
    description: str | None = None
    """What the page says of itself in a sentence or two."""
    summary: str | None = None
    summarized_by: Provenance | None = None
    processed_at: int | None = None
    first_shown_at: int | None = None

    @property
    def time_ms(self) -> int:
        """When it was published: as dated, but not in the future; without a date, when it was found."""
        return self.found_at if self.published_ms is None else min(self.published_ms, self.found_at)


def entry_finding(
    feed: str, feed_title: str, entry: FeedEntry, definition: SourceDefinition, *, run: Run, summarized: bool = False
) -> Finding:
    """Report an entry: its title, address and words are what counts, dates are not.

    One that comes `summarized` is told by its summary; what its HTML says besides is only to be read.
    """
    has_more = bool(entry.content_html) and not summarized
    content_text = plain_text(entry.content_html, TEXT_CHARS_MAX) if has_more else ""
    published_ms = entry.published_ms if entry.published_ms is not None else entry.updated_ms
    body = EntryBody(
        feed=feed,
        feed_title=feed_title,
        id=entry.id,
        title=entry.title or shorten(entry.summary_text, 120) or entry.url or entry.id,
        url=entry.url,
        author=entry.author,
        feed_text=max(content_text, entry.summary_text, key=len),
        content_html=entry.content_html,
        tags=list(entry.categories),
        language=definition.language or entry.language,
        published_ms=published_ms,
        found_at=run.now_ms,
        is_baseline=run.is_first and published_ms is None,
        full_text=definition.full_text,
        labels=definition.labels,
        category=definition.category,
        announced_for_ms=round(newer * 1000) if (newer := definition.announce_newer_than) is not None else None,
    )
    mark = fingerprint(body.title, body.url, body.feed_text)
    return Finding(PIPELINE, KIND, entry_key(feed, entry.id), mark, msgspec.json.encode(body), definition.priority)


def entry_key(feed: str, entry_id: str) -> str:
    """Name an entry's item; ids may be anything, and are unique only within their feed."""
    return f"{feed}/{blake2b(entry_id.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
