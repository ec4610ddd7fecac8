"""What readers see of an item: its card, its document for the search, and the collection they stand in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from tidings.model.clock import day_of
from tidings.model.publication import Attribute, Collection, Document, Filter, Presentation, RankedList
from tidings.model.urls import public_host
from tidings.net.sanitizer import words_of
from tidings.pipelines.hacker_news.body import COLLECTION, KIND, REPLY, TYPES, Given, ItemBody


class ItemCard(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What readers see: the field names of the Firebase API; `title` is plain text, `text` is safe HTML."""

    id: int
    type: str
    state: str
    """`completed`, or `failed` where a newer copy of the item failed; what is shown is the copy before it."""
    by: str | None = None
    time: int | None = None
    """Unix seconds, as the Firebase API has it."""
    published_at: str | None = None
    title: str | None = None
    url: str | None = None
    site: str | None = None
    """The host of `url`."""
    text: str | None = None
    score: int | None = None
    descendants: int | None = None
    kids: tuple[int, ...] = ()
    """Replies in ranked order."""
    parent: int | None = None
    poll: int | None = None
    parts: tuple[int, ...] = ()
    """The options of a poll, in order."""
    topic: str | None = None
    """`ask`, `show`, `tell` or `launch`, by the title."""
    dead: bool = False
    deleted: bool = False
    type_inferred: bool = False


class PostedItem(Given, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One item as it is sent to us, with the field names of the Firebase API; fields that are not known are ignored."""


TOPICS = ("ask", "show", "tell", "launch")
_TOPIC = re.compile(r"(ask|show|tell|launch) hn\b", re.IGNORECASE)
_DAY_SECONDS = 86_400
_TWO = tuple(f"{number:02}" for number in range(60))
_MINUTES = tuple(f"{hour:02}:{minute:02}" for hour in range(24) for minute in range(60))
_day = lru_cache(maxsize=4_096)(day_of)


def present(key: str, body: ItemBody) -> Presentation | None:
    """Make card and document of an accepted item. A deleted item keeps its place in the thread and loses its words.

    An accepted copy that failed afterwards, by hand or when it was processed again, is withdrawn.
    """
    if body.misplaced is not None or body.error is not None:
        return None
    if body.deleted:
        return Presentation(COLLECTION, key, _place(body), _sort(body))
    title = words_of(body.title) or None if body.title else None
    site = public_host(body.url) if body.url else None
    topic = _topic(title) if title else None
    card = ItemCard(
        id=body.id,
        type=body.type or "",
        state="completed",
        by=body.by,
        time=body.time,
        published_at=None if body.time is None else moment(body.time),
        title=title,
        url=body.url,
        site=site,
        text=body.text,
        score=body.score,
        descendants=body.descendants,
        kids=body.kids or (),
        parent=body.shown_parent,
        poll=body.shown_poll,
        parts=body.parts or (),
        topic=topic,
        dead=bool(body.dead),
        type_inferred=body.type_inferred,
    )
    return Presentation(COLLECTION, key, card, _sort(body), lambda: _document(body, title or "", site, topic))


def _place(body: ItemBody) -> ItemCard:
    """Show that something stood here, and what hangs on it."""
    return ItemCard(
        id=body.id,
        type=body.type or "",
        state="completed",
        time=body.time,
        published_at=None if body.time is None else moment(body.time),
        kids=body.kids or (),
        parent=body.shown_parent,
        poll=body.shown_poll,
        parts=body.parts or (),
        dead=bool(body.dead),
        deleted=True,
        type_inferred=body.type_inferred,
    )


def moment(seconds: int) -> str:
    """Write a Unix time in RFC 3339. Days are remembered, because most items share theirs with many others."""
    day, rest = divmod(seconds, _DAY_SECONDS)
    return f"{_day(day * _DAY_SECONDS * 1000)}T{_MINUTES[rest // 60]}:{_TWO[rest % 60]}Z"


def _sort(body: ItemBody) -> int:
    return body.time * 1000 if body.time is not None else body.ingested_at or 0


def _document(body: ItemBody, title: str, site: str | None, topic: str | None) -> Document:
    attributes: dict[str, Attribute] = {"replies": len(body.kids) if body.kids else 0}
    if (parent := body.shown_parent) is not None:
        attributes["parent"] = parent
    if (poll := body.shown_poll) is not None:
        attributes["poll"] = poll
    if body.descendants is not None:
        attributes["comments"] = body.descendants
    if site:
        attributes["site"] = site
    if topic:
        attributes["topic"] = topic
    if body.dead:
        attributes["dead"] = "true"
    return Document(
        title=title,
        text=words_of(body.text) if body.text else "",
        author=body.by,
        type=body.type,
        score=body.score,
        time_ms=_sort(body),
        url=body.url,
        attributes=attributes,
    )


def _topic(title: str) -> str | None:
    found = _TOPIC.match(title)
    return found[1].lower() if found else None


def is_front(card: Mapping[str, Any]) -> bool:
    """Tell whether a card stands for itself: neither a reply nor a poll's option, and not withdrawn."""
    return card.get("parent") is None and card.get("poll") is None and not card.get("deleted") and not card.get("dead")


ITEMS = Collection(
    name=COLLECTION,
    singular="item",
    kind=KIND,
    stories="always",
    card=ItemCard,
    title="Hacker News",
    filters=(
        Filter("type", "type", values=TYPES, help="story, comment, job, poll or pollopt"),
        Filter("by", "by", help="the author's name, case-sensitive"),
        Filter("topic", "topic", values=TOPICS, help="Ask HN, Show HN, Tell HN or Launch HN"),
        Filter("site", "site", help="the host a story links to, without www."),
        Filter("min_score", "score", "at_least", "integer", help="at least this many points"),
        Filter("since", "published_at", "at_least", "date", help="posted on this day or later"),
        Filter("until", "published_at", "before", "date", help="posted before this day"),
    ),
    facets=("type",),
    facet_values={"type": TYPES},
    attributes={
        "type": TYPES,
        "topic": TOPICS,
        "site": (),
        "dead": ("true",),
        "parent": (),
        "poll": (),
        "replies": (),
        "comments": (),
    },
    relation=REPLY,
    accepts_posts=True,
    posted=PostedItem,
    posted_example=PostedItem(
        id=9000001,
        type="story",
        by="tarnwick",
        time=1790000000,
        title="We replaced our message broker with one SQLite file and a loop",
        url="https://blog.slowbytes.example/one-sqlite-file",
        score=287,
        descendants=10,
        kids=(9000005, 9000002),
    ),
    templates=__package__,
    html_fields=("text",),
    is_front=is_front,
    options_field="parts",
    summary_field="text",
    author_field="by",
    tracked={"score": "Points", "descendants": "Comments"},
    example=ItemCard(
        id=9000001,
        type="story",
        state="completed",
        by="tarnwick",
        time=1790000000,
        published_at="2026-09-21T14:13:20Z",
        title="We replaced our message broker with one SQLite file and a loop",
        url="https://blog.slowbytes.example/one-sqlite-file",
        site="blog.slowbytes.example",
        score=287,
        descendants=10,
        kids=(9000005, 9000002),
    ),
)
LISTS = {
    name: RankedList(name, title, COLLECTION)
    for name, title in (
        ("top", "Front page"),
        ("new", "New"),
        ("best", "Best"),
        ("ask", "Ask"),
        ("show", "Show"),
        ("job", "Jobs"),
    )
}
"""The lists of the API, as they rank now."""
