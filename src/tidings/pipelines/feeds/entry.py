"""An entry of any feed: its body while it is worked on, and what readers see of it."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

import msgspec

from tidings.discover.feed import Entry
from tidings.discover.feed_html import plain_text, shorten
from tidings.model.answers import Provenance
from tidings.model.clock import rfc3339
from tidings.model.item import Finding, fingerprint
from tidings.model.publication import Collection, Document, Filter, Notice, NoticeField, Presentation
from tidings.model.workflow import Work

PIPELINE = "feeds"
KIND = "entry"
TEXT_CHARS_MAX = 10_240
EXCERPT_CHARS_MAX = 500
ANNOUNCED_FOR_MS = 3 * 86_400_000
"""An entry dated longer ago is no news: the first look at a feed announces only what is recent."""


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
    """What the feed itself tells."""
    tags: list[str] = []
    language: str | None = None
    published_ms: int | None = None
    """None where the feed gives no date."""
    found_at: int = 0
    full_text: bool = True
    """Whether the page behind the entry is to be read."""

    text: str = ""
    text_from: Literal["feed", "page"] = "feed"
    page_error: str | None = None
    summary: str | None = None
    summarized_by: Provenance | None = None
    processed_at: int | None = None
    first_shown_at: int | None = None

    @property
    def time_ms(self) -> int:
        """When it was published: as dated, but not in the future; without a date, when it was found."""
        return self.found_at if self.published_ms is None else min(self.published_ms, self.found_at)


class EntryCard(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as readers see it."""

    id: str
    feed: str
    feed_title: str
    title: str
    url: str | None
    author: str | None
    summary: str | None
    excerpt: str
    tags: list[str]
    language: str | None
    text_from: str
    published_at: str | None
    date_given: bool
    """False: the feed gave no date, and the time is when it was first seen."""
    processed_at: str | None


def entry_finding(feed: str, feed_title: str, entry: Entry, *, full_text: bool, now_ms: int) -> Finding:
    """Report an entry: its title, address and words are what counts, dates are not."""
    told = plain_text(entry.content_html, TEXT_CHARS_MAX) if entry.content_html else ""
    body = EntryBody(
        feed=feed,
        feed_title=feed_title,
        id=entry.id,
        title=entry.title or shorten(entry.summary_text, 120) or entry.url or entry.id,
        url=entry.url,
        author=entry.author,
        feed_text=max(told, entry.summary_text, key=len),
        tags=list(entry.categories),
        language=entry.language,
        published_ms=entry.published_ms if entry.published_ms is not None else entry.updated_ms,
        found_at=now_ms,
        full_text=full_text,
    )
    mark = fingerprint(body.title, body.url, body.feed_text)
    return Finding(PIPELINE, KIND, entry_key(feed, entry.id), mark, msgspec.json.encode(body))


def entry_key(feed: str, entry_id: str) -> str:
    """Name an entry's item; ids may be anything, and are unique only within their feed."""
    return f"{feed}/{blake2b(entry_id.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def present(key: str, body: EntryBody) -> Presentation:
    """Show an entry."""
    return Presentation(
        collection="entries",
        id=key,
        card=card(key, body),
        sort=body.time_ms,
        document=Document(
            title=body.title,
            text="\n".join(part for part in (body.summary, body.text) if part),
            author=body.author,
            type=KIND,
            time_ms=body.time_ms,
            url=body.url,
            attributes=attributes(body),
        ),
    )


def card(key: str, body: EntryBody) -> EntryCard:
    """Draw an entry."""
    return EntryCard(
        id=key,
        feed=body.feed,
        feed_title=body.feed_title,
        title=body.title,
        url=body.url,
        author=body.author,
        summary=body.summary,
        excerpt=shorten(body.text, EXCERPT_CHARS_MAX),
        tags=body.tags,
        language=body.language,
        text_from=body.text_from,
        published_at=rfc3339(body.time_ms),
        date_given=body.published_ms is not None,
        processed_at=rfc3339(body.processed_at),
    )


def announce(work: Work) -> tuple[Notice, ...]:
    """Tell people of an entry once, while it is news."""
    body: EntryBody = work.body
    is_first = body.first_shown_at is not None and body.first_shown_at == body.processed_at
    return (notice(body),) if is_first and body.found_at - body.time_ms <= ANNOUNCED_FOR_MS else ()


def notice(body: EntryBody) -> Notice:
    """Write the notice of an entry."""
    fields = [NoticeField("Feed", body.feed_title)]
    if body.author:
        fields.append(NoticeField("Author", body.author))
    return Notice(
        title=body.title,
        url=body.url,
        text=body.summary or shorten(body.feed_text, EXCERPT_CHARS_MAX),
        fields=tuple(fields),
        time=rfc3339(body.time_ms),
        attributes=dict(attributes(body)),
    )


def attributes(body: EntryBody) -> dict[str, str | int | float | list[str] | None]:
    """Return what qualifiers of a search or a route may ask about."""
    return {"feed": body.feed, "tag": body.tags, "language": body.language, "author": body.author}


EXAMPLE = EntryBody(
    feed="lampkeeper",
    feed_title="The Lampkeeper's Log",
    id="https://lampkeeper.example/log/salt",
    title="Reading the salt on a lens before you wipe it off",
    url="https://lampkeeper.example/log/salt",
    author="The relief crew",
    summary="The pattern of dried spray tells which vent is leaking.",
    tags=["lenses"],
    published_ms=1_767_225_600_000,
    found_at=1_767_225_600_000,
    processed_at=1_767_225_600_000,
)

ENTRIES = Collection(
    name="entries",
    singular="entry",
    kind=KIND,
    card=EntryCard,
    title="Entries of your feeds",
    filters=(
        Filter("feed", "feed", help="the feed's short name"),
        Filter("author", "author", help="who wrote it"),
        Filter("tag", "tags", "has", help="one of its tags"),
        Filter("language", "language", help="as the feed says, such as en"),
        Filter("published_after", "published_at", "at_least", "date", help="published on or after this day"),
    ),
    facets=("feed",),
    example=card("lampkeeper/0011223344556677", EXAMPLE),
)
