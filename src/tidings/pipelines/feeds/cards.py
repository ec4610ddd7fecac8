"""What readers see of an entry: its card, its document for the search, and the collection they stand in."""

from __future__ import annotations

import msgspec

from tidings.discover.feed.markup import HTML_CHARS_MAX, paragraphs, plain_text, shorten
from tidings.model.clock import rfc3339
from tidings.model.publication import Collection, Document, Filter, FullText, Presentation
from tidings.pipelines.feeds.body import KIND, EntryBody

EXCERPT_CHARS_MAX = 500


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
    labels: list[str]
    """Those of its source."""
    category: str | None
    """The folder of its source."""
    language: str | None
    text_from: str
    page_error: str | None
    """Why the words are the feed's although the page was wanted, such as a paywall."""
    published_at: str | None
    date_given: bool
    """False: the feed gave no date, and the time is when it was first seen."""
    processed_at: str | None


def present(key: str, body: EntryBody) -> Presentation:
    """Show an entry."""
    return Presentation(
        collection="entries",
        id=key,
        card=card(key, body),
        sort=body.time_ms,
        document=lambda: Document(
            title=body.title,
            text="\n".join(part for part in (body.summary, body.text) if part),
            author=body.author,
            type=KIND,
            time_ms=body.time_ms,
            url=body.url,
            attributes=search_attributes(body),
            language=body.language,
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
        labels=list(body.labels),
        category=body.category,
        language=body.language,
        text_from=body.text_from,
        page_error=body.page_error if body.text_from == "feed" else None,
        published_at=rfc3339(body.time_ms),
        date_given=body.published_ms is not None,
        processed_at=rfc3339(body.processed_at),
    )


def full_text(body: EntryBody) -> FullText | None:
    """Return all there is to read of an entry."""
    html = body.content_html or paragraphs(body.text)
    return FullText(plain_text(html, HTML_CHARS_MAX), html) if html else None


def search_attributes(body: EntryBody) -> dict[str, str | int | float | list[str] | None]:
    """Return what qualifiers of a search or a route may ask about."""
    return {
        "feed": body.feed,
        "tag": body.tags,
        "label": list(body.labels),
        "category": body.category,
        "language": body.language,
        "author": body.author,
    }


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
    stories="always",
    card=EntryCard,
    title="Entries of your feeds",
    filters=(
        Filter("feed", "feed", help="the feed's short name"),
        Filter("author", "author", help="who wrote it"),
        Filter("tag", "tags", "has", help="one of its tags"),
        Filter("label", "labels", "has", help="one of its source's labels"),
        Filter("category", "category", help="the folder of its source"),
        Filter("language", "language", help="as the feed says, such as en"),
        Filter("published_after", "published_at", "at_least", "date", help="published on or after this day"),
    ),
    facets=("feed",),
    attributes={"type": (KIND,), "feed": (), "tag": (), "label": (), "category": (), "language": (), "author": ()},
    templates=__package__,
    example=card("lampkeeper/0011223344556677", EXAMPLE),
)
