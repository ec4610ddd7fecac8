"""The work of each transition of the entry workflow."""

from __future__ import annotations

from msgspec.structs import replace

from tidings.discover.feed.markup import clean_html, paragraphs
from tidings.model.contracts import Kit
from tidings.model.harmless import storable
from tidings.model.outcome import Advance, Outcome
from tidings.model.workflow import Work
from tidings.pipelines.feeds.body import PIPELINE, TEXT_CHARS_MAX, EntryBody

ENOUGH_CHARS = 2_000
"""An entry with this much text in the feed is taken as complete: its page is not fetched."""
SHORT_WORDS = 40
"""A text this short is its own summary."""


async def fetch(work: Work, kit: Kit) -> Outcome:
    """Read the page behind the entry, unless the feed carries enough text or the settings say no."""
    body: EntryBody = carried_over(work.body, work.accepted)
    if not body.full_text or body.url is None or len(body.feed_text) >= ENOUGH_CHARS:
        return Advance(with_feed_text(body), note="the feed's own text")
    response = await kit.fetcher.page(body.url)
    extract = await kit.extractor.extract(response.body, response.url, max_chars=TEXT_CHARS_MAX, marked_up=True)
    text = storable(extract.text).strip()
    if len(text) <= len(body.feed_text):
        return Advance(with_feed_text(body), note="the page says no more than the feed")
    author = body.author or extract.author
    language = body.language or extract.language
    read = replace(body, text=text, text_from="page", author=author, language=language, page_error=None)
    html = clean_html(storable(extract.html or ""), response.url)
    return Advance(replace(read, description=extract.description, content_html=html or paragraphs(text)))


def use_feed_text(work: Work) -> Outcome:
    """Go on with the feed's own text: the page cannot be had."""
    body = with_feed_text(carried_over(work.body, work.accepted))
    return Advance(replace(body, page_error=work.error), note="the page cannot be had")


async def summarize(work: Work, kit: Kit) -> Outcome:
    """Ask for a summary, unless the text is short enough to be its own."""
    body: EntryBody = work.body
    if len(body.text.split()) <= SHORT_WORDS:
        return Advance(replace(body, summary=body.text or body.title), note="short enough")
    answer, provenance = await kit.enricher.summarize(
        body.text, title=body.title, description=body.description, pipeline=PIPELINE
    )
    return Advance(replace(body, summary=answer.summary, summarized_by=provenance), provenance=provenance)


def publish(work: Work) -> Outcome:
    """Show the entry."""
    body: EntryBody = work.body
    shown_at = body.first_shown_at if body.first_shown_at is not None else work.now_ms
    return Advance(replace(body, processed_at=work.now_ms, first_shown_at=shown_at))


def carried_over(body: EntryBody, accepted: EntryBody | None) -> EntryBody:
    """Keep when an entry was first found and shown, whatever changed in it since."""
    if accepted is None:
        return body
    return replace(body, found_at=accepted.found_at, first_shown_at=accepted.first_shown_at)


def with_feed_text(body: EntryBody) -> EntryBody:
    """Take the feed's words as the text."""
    return replace(body, text=body.feed_text[:TEXT_CHARS_MAX], text_from="feed")
