"""What is announced of an entry: one notice, while it is news."""

from __future__ import annotations

from tidings.discover.feed.markup import shorten
from tidings.model.clock import rfc3339
from tidings.model.publication import Notice, NoticeField
from tidings.model.workflow import Work
from tidings.pipelines.feeds.body import KIND, EntryBody
from tidings.pipelines.feeds.cards import EXCERPT_CHARS_MAX, search_attributes

ANNOUNCED_FOR_MS = 3 * 86_400_000
"""An entry dated longer ago is no news: the first look at a feed announces only what is recent."""


def announce(work: Work) -> tuple[Notice, ...]:
    """Tell people of an entry once, while it is news."""
    body: EntryBody = work.body
    is_first = body.first_shown_at is not None and body.first_shown_at == body.processed_at
    if body.is_baseline:
        return ()
    news_ms = ANNOUNCED_FOR_MS if body.announced_for_ms is None else body.announced_for_ms
    return (notice(body),) if is_first and body.found_at - body.time_ms <= news_ms else ()


def renew(body: EntryBody, _queued: Notice, _now_ms: int) -> Notice:
    """Tell of the entry as it is now."""
    return notice(body)


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
        attributes={**search_attributes(body), "type": KIND, "by": body.author},
        language=body.language,
    )
