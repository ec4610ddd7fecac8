"""What a pipeline publishes: cards in collections, documents for the search, notices for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

Attribute = str | int | float | list[str] | None


class Document(msgspec.Struct, frozen=True):
    """What the search knows of an item. `attributes` are found by qualifiers (`status:open`)."""

    title: str
    text: str
    author: str | None = None
    type: str | None = None
    score: int | None = None
    time_ms: int = 0
    url: str | None = None
    attributes: Mapping[str, Attribute] = msgspec.field(default_factory=dict)


class Presentation(msgspec.Struct, frozen=True):
    """What readers see of an item: a card on the shelf and, unless withdrawn, a document in the index.

    It is a pure function of the accepted body, so that shelf and index can be rebuilt.
    """

    collection: str
    id: str
    card: Any
    """A msgspec Struct; the collection names its type."""
    sort: int
    """Lists run from the highest down; usually a time in milliseconds."""
    document: Document | None = None


Presenter = Callable[[str, Any], Presentation | None]
"""From key and body; None withdraws card and document."""

Comparison = Literal["is", "at_most", "at_least", "before", "has"]


@dataclass(frozen=True, slots=True)
class Filter:
    """A query parameter of a collection. `field` is a field of the card; `has` looks inside a list."""

    name: str
    field: str
    comparison: Comparison = "is"
    type: Literal["string", "integer", "boolean", "date"] = "string"
    values: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True, slots=True)
class Collection:
    """A published list of cards; `serve` makes routes, pages, feeds and OpenAPI from it."""

    name: str
    """Plural, as in the address: `articles`."""
    singular: str
    """The shelf key's prefix: `article`."""
    kind: str
    card: type[msgspec.Struct]
    title: str
    filters: tuple[Filter, ...] = ()
    facets: tuple[str, ...] = ()
    """Fields counted over the whole collection: `sentiment` gives `sentiment_counts`."""
    facet_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values shown even when none has them; a card without the field counts as `unknown`."""
    relation: str | None = None
    """Threaded by this relation."""
    id_index: bool = False
    """Listed through the id index that the merge writes."""
    accepts_posts: bool = False
    template: str = "plain"
    """Which suit its cards wear on the pages."""
    link_field: str = "url"
    summary_field: str = "summary"
    title_field: str = "title"
    time_field: str = "published_at"
    example: msgspec.Struct | None = None


class NoticeField(msgspec.Struct, frozen=True):
    """A labelled value in a notice."""

    name: str
    value: str
    inline: bool = True


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A message to people, before any channel's form and limits."""

    title: str
    url: str | None = None
    text: str = ""
    color: int | None = None
    fields: tuple[NoticeField, ...] = ()
    time: str | None = None
    attributes: dict[str, Any] = {}
    """What routes are asked about."""


@dataclass(frozen=True, slots=True)
class Route:
    """Which notices of a pipeline go to which channel: those the query matches."""

    pipeline: str
    channel: str
    query: str = ""


@dataclass(frozen=True, slots=True)
class IdIndex:
    """The list of card ids that the merge alone writes: newest first, bounded in number and age."""

    collection: str
    newest: int = 500
    days: int = 30


@dataclass(frozen=True, slots=True)
class Retention:
    """How long items of a kind are kept once at rest; the tombstone stays `forget_days` longer."""

    kind: str
    newest: int | None = None
    days: float | None = None
    by_id_index: bool = False
    forget_days: float = 90
