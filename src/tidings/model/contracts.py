"""What the stages know of each other: seams only, wired in `app.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from tidings.model.answers import (
    IssueAnalysis,
    IssueFacts,
    Provenance,
    RepoFacts,
    RepoSummary,
    Sentiment,
    Summary,
)
from tidings.model.clock import Clock
from tidings.model.item import Appended, Finding, Item, JournalRow, Lease
from tidings.model.pipeline import Ranking
from tidings.model.publication import Notice
from tidings.model.query import Query
from tidings.model.query_tree import Part
from tidings.model.settlement import Merged, Reservation, Settled, Settlement, Swept
from tidings.model.tracks import TrackPoint
from tidings.model.views import (
    AlertView,
    ChannelView,
    DeadGroup,
    DeliveryView,
    Event,
    ItemRow,
    ItemView,
    Point,
    Replayed,
    SourceView,
    StatusView,
)
from tidings.model.web import Extract, Response, ServerEvent

T = TypeVar("T")


class Executor(Protocol):
    """Carries synchronous store calls off the event loop. Writes are answered once they are durable."""

    async def write(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that writes."""
        ...

    async def read(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that only reads."""
        ...


class Intake(Protocol):
    """The append-only log of findings."""

    def append(
        self,
        pipeline: str,
        findings: Sequence[Finding],
        *,
        source: str | None = None,
        cursor: Any = None,
        mark: Any = None,
        completes: bool = False,
        rankings: Sequence[Ranking] = (),
    ) -> Appended:
        """Write what is new or changed, with the source's cursor, mark and rankings, in one transaction."""
        ...

    def merge(self, pipeline: str, limit: int = 500) -> Merged:
        """Turn the next findings, in log order, into items; move the checkpoint with them."""
        ...

    def trim(self, pipeline: str) -> int:
        """Drop findings behind the checkpoint that are older than the log is kept."""
        ...

    def cursor(self, source: str) -> tuple[Any, Any, bool]:
        """Return a source's cursor, its mark and whether a run has ever completed."""
        ...

    def unmerged(self, pipeline: str) -> int:
        """Count what waits behind the checkpoint."""
        ...


class Log(Intake, Protocol):
    """The log as a worker sees it: what it holds becomes items."""

    @property
    def reservations_max(self) -> int:
        """How many stretches of a pipeline's log one process should reserve at once."""
        ...

    def claim_findings(
        self, pipeline: str, limit: int = 500, *, lease_seconds: float = 15, may_reserve: bool = True
    ) -> tuple[Merged, Reservation | None]:
        """Take the next findings: reserve them where their items begin with pure steps, else merge them at once."""
        ...

    def give_back(self, reservation: Reservation) -> Merged:
        """End a reservation whose run was cut off, or whose end cannot be written: each item gets its own attempt."""
        ...


class Items(Protocol):
    """The remembered items and who may act on them."""

    def claim(
        self,
        pipeline: str,
        lane: str,
        limit: int,
        owner: str,
        lease_seconds: float,
        *,
        in_order: bool = False,
        suspects_alone: bool = False,
    ) -> list[Lease]:
        """Lease up to `limit` due items: by priority and newest first, with a share for the oldest; or all by age.

        With `suspects_alone`, an item whose worker vanished is leased alone.
        """
        ...

    def renew(self, leases: Sequence[tuple[int, int]], lease_seconds: float) -> set[int]:
        """Prolong leases (id, token) that still hold; return their ids."""
        ...

    def regain(self, leases: Sequence[tuple[int, int]], lease_seconds: float) -> set[int]:
        """Take leases up again that ran out while the store was away and were not taken by others; return their ids."""
        ...

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """Close a batch: the guarded update first, effects only for the ids it returned."""
        ...

    def release(self, leases: Sequence[tuple[int, int]]) -> int:
        """Give leases back unused, with their attempt."""
        ...

    def were_settled(self, leases: Sequence[tuple[int, int]]) -> set[int]:
        """Tell which leases (id, token) were closed: read back after a COMMIT whose reply was lost."""
        ...

    def prefetch(self, pipeline: str, refs: Sequence[str]) -> dict[str, bytes]:
        """Return the accepted bodies of other items by ref; one that was not accepted yet is absent."""
        ...

    def next_due_ms(self, pipelines: Sequence[str], lanes: Sequence[str]) -> int | None:
        """Return how long until something is due (0: now) in the lanes, or None when nothing waits for time."""
        ...

    def with_due(self, pipelines: Sequence[str], lane: str) -> list[str]:
        """Return those of the pipelines that have something due in a lane: looking keeps no process from writing."""
        ...

    def sweep(self, limit: int = 500) -> Swept:
        """Return expired leases to the queue, by the token seen."""
        ...

    def find(self, pipeline: str, kind: str, key: str) -> Item | None:
        """Return one item."""
        ...

    def life(self, item: int) -> list[JournalRow]:
        """Return an item's journal, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result."""

    pipeline: str
    kind: str
    key: str
    title: str
    snippet: str
    """Plain text with the found words between \\x02 and \\x03; not escaped: that is done where it is shown."""
    rank: float
    author: str | None
    type: str | None
    score: int | None
    time_ms: int
    url: str | None
    attributes: Mapping[str, Any]
    shelf_key: str = ""
    """The key of its card."""
    item: int = 0
    passages: Mapping[str, str] = field(default_factory=dict)
    """The best passage of `title` and of `text`, where a word was found in them, marked as the snippet is."""
    explanation: str | None = None
    """How the rank came about, where that was asked."""


class Index(Protocol):
    """The full-text search."""

    def search(
        self, query: Query, *, pipeline: str | None = None, limit: int = 50, offset: int = 0, newest: bool = False
    ) -> tuple[list[Hit], int]:
        """Return hits, best (or newest) first, and how many there are in all."""
        ...


SearchOrder = Literal["relevance", "newest", "score"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: one page of it."""

    hits: list[Hit]
    total: int
    next_cursor: str | None = None
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How many of all hits have each `type`, `pipeline`, `source` and `day`, where that was asked."""
    instead: str | None = None
    """The words that were searched for instead, when those of the query found little and one of them is unknown."""


class Search(Protocol):
    """The full-text search, by a parsed query."""

    def search(
        self,
        root: Part,
        *,
        pipeline: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        order: SearchOrder = "relevance",
        with_facets: bool = False,
        explain: bool = False,
    ) -> Found:
        """Return a page of hits, the next one by its cursor; BadInput where the query asks too much."""
        ...

    def suggest(self, text: str, *, pipeline: str | None = None, limit: int = 10) -> list[str]:
        """Return how a text that is being typed may go on."""
        ...

    def similar(self, pipeline: str, kind: str, key: str, *, limit: int = 10) -> list[Hit]:
        """Return what has the most in common with an item."""
        ...


@dataclass(frozen=True, slots=True)
class ShelfEntry:
    """A card as stored: encoded JSON."""

    key: str
    value: bytes
    version: int
    revision: int
    sort: int
    written_at: int
    item: int | None = None
    """The item it shows, where the store tells; a card's id may differ from its item's key."""


class Shelf(Protocol):
    """The key-value read model."""

    def get(self, pipeline: str, key: str) -> ShelfEntry | None:
        """Return one entry."""
        ...

    def get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        """Return the entries that exist."""
        ...

    def newest(
        self, pipeline: str, collection: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[ShelfEntry]:
        """List a collection from the highest sort down, behind `after` (sort, key)."""
        ...

    def count(self, pipeline: str, collection: str) -> int:
        """Count a collection."""
        ...

    def version(self, pipeline: str) -> int:
        """Return a number that grows with every change of the pipeline's shelf."""
        ...


@dataclass(frozen=True, slots=True)
class ThreadNode:
    """One place in a thread: a ref, its parent's ref, its order among siblings, its depth."""

    ref: str
    parent: str | None
    position: int | None
    depth: int


class Links(Protocol):
    """Relations between items."""

    def thread(self, pipeline: str, relation: str, root: str, limit: int = 10_000) -> list[ThreadNode]:
        """Return everything below `root`, root first, parents before children."""
        ...

    def parents(self, pipeline: str, relation: str, child: str) -> list[str]:
        """Return the effective parent (first) and the other stated ones."""
        ...

    def children(self, pipeline: str, relation: str, parent: str, limit: int = 1000) -> list[str]:
        """Return refs in order."""
        ...

    def children_of_each(
        self, pipeline: str, relation: str, parents: Sequence[str], limit: int = 100_000
    ) -> Mapping[str, Sequence[str]]:
        """Return the refs below each of several, the lowest first; those without any are absent."""
        ...


class Ledger(Protocol):
    """Caches, budgets and counters behind the enricher; see `process.enrich`."""

    async def get(self, name: str, key: str) -> bytes | None: ...  # noqa: D102
    async def put(self, name: str, key: str, value: bytes, ttl_seconds: int) -> None: ...  # noqa: D102
    async def reserve(self, name: str, amount: int, limit: int) -> bool: ...  # noqa: D102
    async def settle(self, name: str, reserved: int, actual: int) -> None: ...  # noqa: D102
    async def count(self, name: str, amount: int) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Permit:
    """A limiter's answer: go (`wait_ms` is 0, with a token to give back), or come back later."""

    wait_ms: int
    token: int = 0


class Fetcher(Protocol):
    """The web, in two faces; see `net.client.Web`."""

    async def page(  # noqa: D102
        self,
        url: str,
        *,
        accept: str | None = None,
        max_bytes: int | None = None,
        robots: bool = True,
        conditional: bool = False,
    ) -> Response: ...

    async def call(  # noqa: D102
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        data: Any = None,
        timeout_seconds: float = 30,
        conditional: bool = False,
        follow_redirects: bool = False,
        retries: int = 0,
    ) -> Response: ...

    def events(self, url: str, *, silence_seconds: float = 75) -> AsyncIterator[ServerEvent]: ...  # noqa: D102


class Extractor(Protocol):
    """Gets the readable part of a page, in a killable child process."""

    async def extract(self, html: bytes, url: str, *, max_chars: int = 10_240, charset: str | None = None) -> Extract:
        """Return the main text and what the page says of itself."""
        ...


class Enricher(Protocol):
    """Adds judgment: four questions with closed answers."""

    # Each answer comes with who gave it and what it cost.
    async def summarize(  # noqa: D102
        self, text: str, *, title: str | None = None, pipeline: str = "", words: int = 80
    ) -> tuple[Summary, Provenance]: ...

    async def judge_sentiment(  # noqa: D102
        self, text: str, *, title: str | None = None, pipeline: str = ""
    ) -> tuple[Sentiment, Provenance]: ...

    async def summarize_repo(self, facts: RepoFacts, *, pipeline: str = "") -> tuple[RepoSummary, Provenance]: ...  # noqa: D102

    async def analyze_issue(self, facts: IssueFacts, *, pipeline: str = "") -> tuple[IssueAnalysis, Provenance]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of a sent notice."""

    message_id: str | None
    answer: str
    """What the service said, for the operator; no secrets."""
    not_before_ms: int = 0
    """How long the channel asks us to wait before the next one."""


class Notifier(Protocol):
    """Carries notices to one channel."""

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Send, or raise SlowDown, Ambiguous, Transient, Permanent or Misconfigured (the channel is to be paused)."""
        ...

    def render(self, notice: Notice, delivery_id: str) -> Any:
        """Return what would be sent, without any secret."""
        ...


# What operators see and do, for the command line and the dashboard alike; synchronous, like the store.


class Tracks(Protocol):
    """How the numbers and ranks of cards went."""

    def points(self, pipeline: str, key: str) -> list[TrackPoint]:
        """Return the points of a card, oldest first, by its key on the shelf."""
        ...


class StatusViews(Protocol):
    """How everything is doing: pipelines, sources, channels, alerts, and the history behind the charts."""

    def status(self) -> StatusView:
        """Return everything at a glance."""
        ...

    def sources(self) -> list[SourceView]:
        """Return every source and its health."""
        ...

    def channels(self) -> list[ChannelView]:
        """Return the channels and their limiters."""
        ...

    def alerts(self, *, all_of_them: bool = False) -> list[AlertView]:
        """Return the firing alerts, or the recent history too."""
        ...

    def points(self, series: str, *, since_ms: int) -> list[Point]:
        """Return a series of low-resolution history, such as `due:PIPELINE` or `settled:PIPELINE`."""
        ...


class ItemViews(Protocol):
    """Items as people see them, and what happened to them."""

    def items(
        self,
        *,
        pipeline: str | None = None,
        kind: str | None = None,
        state: str | None = None,
        standing: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> list[ItemRow]:
        """List items, newest first, with ids below `before`."""
        ...

    def item(self, item: int) -> ItemView | None:
        """Return one item, whole."""
        ...

    def find(self, pipeline: str, kind: str, key: str) -> ItemView | None:
        """Return one item, whole, by its name."""
        ...

    def deliveries(self, *, limit: int = 50, channel: str | None = None) -> list[DeliveryView]:
        """List notices, newest first."""
        ...

    def dead_letters(self) -> list[DeadGroup]:
        """Return dead letters grouped by cause."""
        ...

    def events(self, *, after: int, limit: int = 200) -> list[Event]:
        """Return what happened after an event id, oldest first; `after` -1 returns only the newest event."""
        ...


class ItemActions(Protocol):
    """What an operator does to items. Each raises BadInput where it is not possible."""

    def transition(self, item: int, name: str, *, actor: str, reason: str) -> None:
        """Perform a manual transition."""
        ...

    def replay(
        self, pipeline: str, *, state: str | None, query: str | None, actor: str, dry_run: bool, item: int | None = None
    ) -> Replayed:
        """Process items again from a state, where they came past it."""
        ...

    def revive(
        self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None, actor: str
    ) -> int:
        """Bring dead letters back: one, those of a cause, or all."""
        ...


class Burials(Protocol):
    """Dead letters forgotten for good."""

    def purge(self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None) -> int:
        """Bury dead letters; tombstones stay."""
        ...


class Switches(Protocol):
    """Pipelines, sources and channels that people stop, start and hurry. BadInput where there is no such part."""

    def pause(self, part: str, *, reason: str) -> None:
        """Stop a part without losing anything: `pipeline:P`, `source:S` or `channel:C`."""
        ...

    def resume(self, part: str) -> None:
        """Start it again."""
        ...

    def check_now(self, source: str) -> None:
        """Make a source due at once."""
        ...


class Tokens(Protocol):
    """Who may use the API: live tokens and their scopes."""

    def scope_of(self, token: str) -> str | None:
        """Return the scope of a live token, or None."""
        ...

    def note_use(self, token: str) -> None:
        """Note that a token was used just now; within a minute only the first use is written."""
        ...

    def are_there(self) -> bool:
        """Tell whether any live token exists."""
        ...


@dataclass(frozen=True, slots=True)
class Kit:
    """What a waiting processor or a source may use."""

    fetcher: Fetcher
    extractor: Extractor
    enricher: Enricher
    ledger: Ledger
    clock: Clock


Probe = Callable[[Kit], Awaitable[str]]
"""The cheapest real call to a service, for `tidings doctor`: returns what it found, raises what is wrong."""
