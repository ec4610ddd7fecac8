"""What a pipeline publishes: cards in collections, documents for the search, notices for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

import msgspec

Attribute = bool | str | int | float | list[Any] | None

DELIVERY = "delivery"
"""The kind of an item that carries one notice to one channel."""
ANNOUNCES = "announces"
"""The relation between a delivery and the item it tells of."""


def delivery_keys(channel: str) -> dict[str, str]:
    """Return the range that the keys of a channel's deliveries lie in: `NAME/` and on, before `NAME0`."""
    return {"prefix": f"{channel}/", "prefix_end": f"{channel}0"}


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
    language: str | None = None
    """Its two-letter code, by which words are stemmed; English unless told."""


class Presentation(msgspec.Struct, frozen=True):
    """What readers see of an item: a card on the shelf and, unless withdrawn, a document in the search index.

    It is a pure function of the accepted body, so that shelf and index can be rebuilt.
    """

    collection: str
    id: str
    card: Any
    """A msgspec Struct; the collection names its type."""
    sort: int
    """Lists run from the highest down; usually a time in milliseconds."""
    document: Callable[[], Document] | None = None
    """Makes what the search knows of the item: only who follows the shelf for the search asks for it."""


class FullText(msgspec.Struct, frozen=True):
    """All there is to read of an item. The HTML is sanitized, and holds images by their address."""

    text: str
    content_html: str


FullTextOf = Callable[[Any], FullText | None]
"""From an item's accepted body; None where there is nothing but what the card tells."""


def told_failed(presentation: Presentation, state: str) -> Presentation:
    """Let a card tell that a newer copy of its item failed, where cards of its type tell their item's state."""
    if "state" not in presentation.card.__struct_fields__:
        return presentation
    return msgspec.structs.replace(presentation, card=msgspec.structs.replace(presentation.card, state=state))


class Shown(msgspec.Struct, frozen=True):
    """A presentation ready for the shelf: its card is encoded, its key is whole."""

    key: str
    collection: str
    id: str
    sort: int
    value: bytes


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
class Chart:
    """A collection's newest cards over time, stacked by the values of a field."""

    field: str
    title: str
    values: Mapping[str, str]
    """From the bottom up, with their words in the legend; a card with none of them counts as the last."""


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
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What searches and routes may ask of its documents and notices (`status:open`), each with the values it is limited
    to; without any, the names of the filters."""
    is_searched: bool = True
    """Its items are documents of the search; what searches and routes may ask is told only by such collections."""
    relation: str | None = None
    """Threaded by this relation."""
    id_index: bool = False
    """Listed through the id index that the merge writes."""
    accepts_posts: bool = False
    posted: type[msgspec.Struct] | None = None
    """What one post holds, described field by field in OpenAPI; None: any object."""
    posted_example: msgspec.Struct | None = None
    """One that is accepted as it stands; None: the example card."""
    templates: str = ""
    """The Python package whose folder `templates` holds `<singular>_row.html` (a card in a list) and
    `<singular>_card.html` (on its own page); where one is missing the card looks plain."""
    html_fields: tuple[str, ...] = ()
    """Fields that hold HTML, which pages and feeds clean; everything else is plain text."""
    is_front: Callable[[Mapping[str, Any]], bool] | None = None
    """Which cards stand for themselves, in lists and among the latest; None: all, of threads those without a parent."""
    options_field: str | None = None
    """A field with ids of cards of this collection that are shown inside this one, as a poll's options."""
    steps_field: str | None = None
    """A field with texts that feeds append as a numbered list."""
    chart: Chart | None = None
    link_field: str = "url"
    summary_field: str = "summary"
    title_field: str = "title"
    time_field: str = "published_at"
    author_field: str | None = None
    wishable: str | None = None
    """A pattern of ids: a card of such an id that is not here can be wished for, and a source fetches it."""
    members_query: str = ""
    """Finds the items that a card's page lists, such as those of a user: `by:{id}`."""
    stories: Literal["always", "on request", "never"] = "never"
    """Whether its cards are grouped with others that tell the same event."""
    tracked: Mapping[str, str] = field(default_factory=dict)
    """Fields with numbers whose course is kept, with the ranks, while a card stands in a list; with their words."""
    gathers: str | None = None
    """A mapping of the card and of the finding that later findings add to although nothing has changed; the card's id
    is the item's key. Readers see it at once, at one write a run."""
    example: msgspec.Struct | None = None


@dataclass(frozen=True, slots=True)
class RankedList:
    """A list of cards in an order that a source reports, such as a front page; its newest order is kept."""

    name: str
    """As in the address: `top`."""
    title: str
    collection: str
    length_max: int = 500

    @property
    def key(self) -> str:
        """Where its order stands on the shelf: `{"ids": [...]}`."""
        return f"list:{self.name}"


QUEUE_DAYS = 7.0


class NoticeField(msgspec.Struct, frozen=True):
    """A labelled value in a notice."""

    name: str
    value: str
    inline: bool = True
    time: str | None = None
    """The moment that the value tells, as RFC 3339, for channels that can show it in the reader's own time."""
    is_day: bool = False
    """The value tells only a day: no hour of the moment means anything."""


class NoticeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One of the notices that a digest tells of, in a line."""

    title: str
    url: str | None = None
    text: str = ""
    """What matters most of it: what changed, or its date."""
    time: str | None = None
    """The moment that the text tells, as RFC 3339."""
    group: str = ""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A message to people, before any channel's form and limits."""

    title: str
    url: str | None = None
    text: str = ""
    """All that is told below the title."""
    summary: str = ""
    """The part of the text that tells what the item is; empty: the text does."""
    changes: str = ""
    """The part of the text that tells what changed; empty where the item is new."""
    color: int | None = None
    fields: tuple[NoticeField, ...] = ()
    time: str | None = None
    attributes: dict[str, Any] = {}
    """What routes are asked about; `type`, `by` and `score` as searches are."""
    language: str | None = None
    """Its two-letter code, by which routes stem words; English unless told."""
    entries: tuple[NoticeEntry, ...] = ()
    """What a digest tells of, group by group; the text holds the same for channels that cannot link words."""
    closing: str = ""
    """What a digest says of notices that it leaves out."""
    footer: str = ""
    """What stands at the end, before the delivery's id; empty: the product's name."""
    username: str | None = None
    """The name shown as the sender, where a service lets one choose."""
    avatar: str | None = None
    """The address of the picture shown beside it."""
    occasion: str = ""
    """What it is told for, where that is no revision of its item: each item tells it once to each channel."""


class Texts(msgspec.Struct, frozen=True):
    """The words, colors and fields that a route or a channel gives its notices; what is empty stays as it is."""

    title: str = ""
    text: str = ""
    footer: str = ""
    colors: dict[str, str] = {}
    fields: tuple[str, ...] | None = None
    username: str = ""
    avatar: str = ""


class Calm(msgspec.Struct, frozen=True):
    """How a route keeps from disturbing: a notice carries it from its birth on."""

    digest: str = ""
    """When the notices go out, all in one message; empty: each for itself."""
    quiet: str = ""
    """When nothing is sent."""
    max_per_hour: int = 0
    """The most messages in an hour; what is more goes into a digest. 0: no such limit."""


@dataclass(frozen=True, slots=True)
class Route:
    """Which notices of a pipeline go to which channel: those the query matches."""

    pipeline: str
    channel: str
    query: str = ""
    queue_days: float = QUEUE_DAYS
    """How long a notice may wait to be sent; after that it is no news."""
    calm: Calm = Calm()
    texts: Texts = Texts()
    stories: int = 0
    """Announce stories instead of items: each once, when so many sources tell it."""

    @property
    def name(self) -> str:
        """What tells the route's digests and its rate from those of others."""
        return blake2b(f"{self.pipeline}/{self.channel}/{self.query}".encode(), digest_size=5).hexdigest()


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
