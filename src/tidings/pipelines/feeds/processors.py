"""The work of each transition of the entry workflow."""

from __future__ import annotations

from msgspec.structs import replace

from tidings.discover.feed.markup import clean_html, paragraphs, without_headline
from tidings.model.contracts import Kit
from tidings.model.harmless import storable
from tidings.model.outcome import Advance, Outcome
from tidings.model.workflow import Work
from tidings.pipelines.feeds.body import PIPELINE, TEXT_CHARS_MAX, EntryBody
from tidings.process.extract.article_page import read_article

ENOUGH_CHARS = 2_000
"""An entry with this much text in the feed is taken as complete: its page is not fetched."""
PAGE_AGAIN_HOURS = (6, 24, 72)
"""When a page that shows no article is tried again."""
HOUR_MS = 3_600_000
SHORT_WORDS = 40
"""A text this short is its own summary."""


async def fetch(work: Work, kit: Kit) -> Outcome:
    """Read the page behind the entry, unless the feed carries enough text or the settings say no."""
    body: EntryBody = carried_over(work.body, work.accepted)
    if not body.full_text or body.url is None or len(body.feed_text) >= ENOUGH_CHARS:
        return Advance(with_feed_text(body), note="the feed's own text")
    extract, address = await read_article(kit, body.url, body.title, max_chars=TEXT_CHARS_MAX, marked_up=True)
    if extract.barrier is not None:
        tried = replace(with_feed_text(body), page_tries=body.page_tries + 1)
        return Advance(replace(tried, page_error=f"the page shows {extract.barrier}"), note=extract.barrier)
    text = storable(extract.text).strip()
    if len(text) <= len(body.feed_text):
        return Advance(with_feed_text(body), note="the page says no more than the feed")
    author = body.author or extract.author
    language = body.language or extract.language
    read = replace(body, text=text, text_from="page", author=author, language=language, page_error=None, page_tries=0)
    html = without_headline(clean_html(storable(extract.html or ""), address), body.title)
    return Advance(replace(read, description=extract.description, content_html=html or paragraphs(text)))


def use_feed_text(work: Work) -> Outcome:
    """Go on with the feed's own text: the page cannot be had."""
    body = with_feed_text(carried_over(work.body, work.accepted))
    return Advance(replace(body, page_error=work.error, page_tries=0), note="the page cannot be had")


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
    done = replace(body, processed_at=work.now_ms, first_shown_at=shown_at)
    if not 0 < body.page_tries <= len(PAGE_AGAIN_HOURS):
        return Advance(done)
    return Advance(done, due_at=work.now_ms + PAGE_AGAIN_HOURS[body.page_tries - 1] * HOUR_MS)


def carried_over(body: EntryBody, accepted: EntryBody | None) -> EntryBody:
    """Keep when an entry was first found and shown, whatever changed in it since."""
    if accepted is None:
        return body
    return replace(
        body,
        found_at=accepted.found_at,
        is_baseline=accepted.is_baseline,
        first_shown_at=accepted.first_shown_at,
        page_tries=accepted.page_tries if accepted.url == body.url else 0,
    )


def with_feed_text(body: EntryBody) -> EntryBody:
    """Take the feed's words as the text."""
    return replace(body, text=body.feed_text[:TEXT_CHARS_MAX], text_from="feed")
