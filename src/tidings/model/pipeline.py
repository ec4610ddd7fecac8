"""A pipeline is one declaration: sources, workflows and what is published."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from tidings.model.errors import BadInput, Misconfigured
from tidings.model.item import Finding, Rejected
from tidings.model.publication import (
    Collection,
    Document,
    FullTextOf,
    IdIndex,
    Notice,
    Presentation,
    Presenter,
    RankedList,
    Retention,
    Shown,
)
from tidings.model.source_definition import SourceDefinition, checked_options
from tidings.model.wishes import GrantedWishes, Outdated
from tidings.model.workflow import Work, Workflow

if TYPE_CHECKING:
    from tidings.model.contracts import Kit

_encode = msgspec.json.Encoder(order="deterministic").encode

Deliver = Callable[[Work, tuple[Notice, ...]], tuple[Finding, ...]]
"""Makes delivery findings of notices, by the configured routes."""


def no_deliveries(_: Work, __: tuple[Notice, ...]) -> tuple[Finding, ...]:
    """Announce nothing: no route is configured."""
    return ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a source is asked: every so many seconds, or by a cron expression (UTC)."""

    every_seconds: float | None = None
    cron: str | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of a declared list as its source has it now: ids of cards, the first one first."""

    list: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A part of what a source found, committed as one: findings, cursor and, with the run's last page, the mark."""

    findings: tuple[Finding, ...]
    cursor: Any = None
    """Where to go on after a crash; None leaves it as it is."""
    mark: Any = None
    """What the next run's early exit compares with; kept only when the run completes."""
    rejected: tuple[Rejected, ...] = ()
    credits: int = 0
    next_check_seconds: float | None = None
    """A wish for an earlier or later next run than the schedule's."""
    note: str | None = None
    incomplete: str | None = None
    """Why there was more than this run has read: what lies beyond is not found by the next one."""
    rankings: tuple[Ranking, ...] = ()
    """Each replaces the order that was kept of its list."""
    granted: GrantedWishes | None = None
    """How wishes were answered; what was found is among the findings."""
    outdated: Outdated | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What a source is told when asked."""

    source: str
    now_ms: int
    cursor: Any = None
    mark: Any = None
    is_first: bool = False
    """No run has ever completed: a baseline."""
    options: Mapping[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """Discovers findings, newest first, page by page."""

    @property
    def name(self) -> str:
        """Unique; begins with the pipeline's name and a dot."""
        ...

    @property
    def schedule(self) -> Schedule:
        """When to ask."""
        ...

    def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield what is there, page by page."""
        ...


@runtime_checkable
class Addressed(Source, Protocol):
    """A source that is told apart by its address: the store names it once, and it keeps that name."""

    @property
    def address(self) -> str:
        """Its canonical address."""
        ...

    def called(self, name: str) -> Addressed:
        """Return the same source under the name that the store gave it."""
        ...

    def places(self, cursor: Any) -> tuple[str, ...]:
        """Return the canonical addresses that a kept cursor tells of, the configured one first."""
        ...


@runtime_checkable
class Defined(Addressed, Protocol):
    """A source that was made from a definition."""

    @property
    def definition(self) -> SourceDefinition:
        """What was asked for."""
        ...


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For kinds of sources that have no options of their own."""


@dataclass(frozen=True)
class SourceKind:
    """A kind of source that people can add while everything runs."""

    name: str
    """As in a definition's `kind`."""
    title: str
    """What it reads, for people: `RSS, Atom or JSON feed`."""
    build: Callable[[str, SourceDefinition, Any], Addressed]
    """Makes the source from its name (without the pipeline's), its definition and its checked options.

    Raises BadInput saying which field is wrong.
    """
    options: type[msgspec.Struct] = NoOptions
    """What its definition's `options` may hold."""


class PlacedSource(NamedTuple):
    """A source under its name, with the pipeline it belongs to and where it comes from."""

    pipeline: Pipeline
    source: Source
    origin: Literal["file", "store"] = "file"


class Admit(Protocol):
    """Makes a finding of one uploaded object, or raises BadInput saying what is wrong."""

    def __call__(self, value: Any, *, way: str) -> Finding:
        """`way` is how it came: POST or BULK."""
        ...


Announce = Callable[[Work], tuple[Notice, ...]]
"""Called when a publishing transition settles; `work.accepted` is what readers saw before."""

Renew = Callable[[Any, Notice, int], Notice | None]
"""From an item's accepted body, a notice of it that was queued, and the time: the notice as it is true now, or None."""


@dataclass(frozen=True)
class Pipeline:
    """All there is to know of one kind of watching. Checked when declared."""

    name: str
    title: str
    about: str
    workflows: Mapping[str, Workflow]
    sources: tuple[Source, ...] = ()
    """As configured; those that have an address get their name from the store."""
    source_kinds: tuple[SourceKind, ...] = ()
    """What can be added at run time; none: its sources are those of the file."""
    source_keys: Callable[[str], str] | None = None
    """From a source's name to how the keys of its items begin; None: several sources may bring the same item."""
    collections: tuple[Collection, ...] = ()
    presenters: Mapping[str, Presenter] = field(default_factory=dict)
    full_texts: Mapping[str, FullTextOf] = field(default_factory=dict)
    """Per kind: all there is to read of an item. Lists leave it out."""
    republishes: bool = True
    """Whether full texts are given to others: by the API, in feeds and in exports. Operators can read them anyway."""
    lists: tuple[RankedList, ...] = ()
    track_seconds: float = 300
    """How far apart the points of a card's history are at least."""
    first_cards: Mapping[str, Presenter] = field(default_factory=dict)
    """Per kind: the card the merge writes for a new item, from the finding's payload."""
    id_index: IdIndex | None = None
    announce: Mapping[str, Announce] = field(default_factory=dict)
    renew: Mapping[str, Renew] = field(default_factory=dict)
    """Asked when a notice is about to be sent, maybe days after it was queued; without one it is sent as it was."""
    announce_attempts: int = 5
    """How often a notice is tried before it is a dead letter."""
    retention: tuple[Retention, ...] = ()
    admit: Admit | None = None
    shelf_writes_per_day: int | None = None
    """Counted, with an alert at 90 %."""
    tombstone_days: float = 90
    sample_notice: Notice | None = None

    def __post_init__(self) -> None:
        for kind, workflow in self.workflows.items():
            if kind != workflow.kind or ":" in kind:
                raise Misconfigured(f"{self.name}: kind {kind!r} does not fit its workflow {workflow.kind!r}")
        for collection in self.collections:
            if collection.kind not in self.workflows:
                raise Misconfigured(f"{self.name}: collection {collection.name} shows unknown kind {collection.kind}")
        for each in self.lists:
            if self.collection(each.collection).name == "lists" or not each.name.isidentifier():
                raise Misconfigured(f"{self.name}: the list {each.name!r} has no address")
        for source in self.sources:
            if not source.name.startswith(f"{self.name}."):
                raise Misconfigured(f"{self.name}: source {source.name!r} must be named {self.name}.<something>")

    def source(self, name: str, definition: SourceDefinition) -> Addressed:
        """Make a source as it was asked for; raise BadInput where it cannot be made."""
        for kind in self.source_kinds:
            if kind.name == definition.kind:
                return kind.build(name, definition, checked_options(kind.options, definition.options))
        known = ", ".join(kind.name for kind in self.source_kinds) or "none"
        raise BadInput(f"kind: {self.name} has no sources of the kind {definition.kind!r}; known: {known}")

    def show(self, presentation: Presentation | None) -> Shown | None:
        """Make a presentation ready for the shelf: the same card has the same bytes wherever it is made."""
        if presentation is None:
            return None
        key = f"{self.collection(presentation.collection).singular}:{presentation.id}"
        return Shown(
            key,
            presentation.collection,
            presentation.id,
            presentation.sort,
            _encode(presentation.card),
        )

    def searchable(self, kind: str, key: str, body: bytes) -> tuple[str, Document] | None:
        """Make what the search knows of an item from its accepted body, with the key of its card; None: nothing."""
        presenter, workflow = self.presenters.get(kind), self.workflows.get(kind)
        presentation = presenter(key, workflow.decode(body)) if presenter is not None and workflow is not None else None
        if presentation is None or presentation.document is None:
            return None
        return f"{self.collection(presentation.collection).singular}:{presentation.id}", presentation.document()

    def collection(self, name: str) -> Collection:
        """Return the collection called `name`."""
        for collection in self.collections:
            if collection.name == name:
                return collection
        raise Misconfigured(f"{self.name} publishes no collection {name!r}")
