"""What the server is given: the store's faces, the declared pipelines, and values. `app.py` fills it in."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.model.changes import AcceptedCopy, Changes
from tidings.model.clock import Clock, SystemClock
from tidings.model.contracts import (
    Burials,
    Executor,
    Intake,
    ItemActions,
    ItemViews,
    Ledger,
    Links,
    Previews,
    Search,
    Shelf,
    SourceChanges,
    StatusViews,
    Switches,
    Tokens,
    Tracks,
)
from tidings.model.errors import BadInput
from tidings.model.marks import Marks
from tidings.model.pipeline import Pipeline
from tidings.model.stories import StoryViews
from tidings.model.trials import TryRoute
from tidings.model.wishes import Wishes
from tidings.serve.invitation import Invitation

ParseLines = Callable[[bytes], Iterator[tuple[int, "Any | BadInput"]]]
"""From an uploaded body, a JSON array or JSON lines, to numbered values; a line that cannot be read gives its error."""


@dataclass(frozen=True, slots=True)
class RequestRates:
    """How much one client may ask; a minute's worth may come at once.

    Reads from this machine itself are not limited: they are open, and cheap.
    """

    reads_per_minute: int = 3_000
    writes_per_minute: int = 6_000
    logins_per_minute: int = 10
    streams: int = 64
    """Live event streams at once, over all clients."""


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """How large an upload may be."""

    one_bytes_max: int = 1 << 20
    bulk_bytes_max: int = 10 << 20
    bulk_lines_max: int = 5_000
    body_seconds_max: float = 30


def _unobserved(_route: str, _status: int, _seconds: float) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBackend:
    """What a server that only reads stands on; there need be no database behind it."""

    pipelines: Mapping[str, Pipeline]
    executor: Executor
    shelf: Shelf
    search: Search
    links: Links
    tokens: Tokens
    accepted: Callable[[Sequence[int]], Mapping[int, AcceptedCopy]] | None = None
    """Returns the accepted bodies of items, for full texts; None: there are only cards here."""
    wishes: Wishes | None = None
    """Where cards are wished for that are not here; None: nobody would fetch them."""
    metrics: Callable[[], tuple[bytes, str]]
    """Return the exposition and its content type."""
    ready: Callable[[], dict[str, str]]
    """Return the problems by part; empty means ready."""
    standby_lag_seconds: Callable[[], float | None] = lambda: None
    """Return by how much the standby we read may be behind; None where it is no standby."""
    observe: Callable[[str, int, float], None] = _unobserved
    """Called after every request with its route, status and seconds."""
    observe_answer: Callable[[bool], None] = lambda _is_hit: None
    """Called with whether an answer was kept already, or had to be read from the shelf."""
    clock: Clock = field(default_factory=SystemClock)
    monotonic: Callable[[], float] = time.monotonic
    """Measures how long something is remembered; never goes back."""
    is_demo: bool = False
    loopback: bool = True
    """The server listens on the loopback interface only."""
    hosts: frozenset[str] = frozenset()
    """Names by which we may be called besides the loopback ones; without ports."""
    invitation: Invitation | None = None
    """A link that signs one browser in; only where nobody but this machine can reach the server."""
    root_path: str = ""
    """Where we live below a proxy, such as `/tidings`."""
    cors_origins: frozenset[str] = frozenset()
    rates: RequestRates = RequestRates()
    version: str = "0"
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Signs form tokens; random unless several servers are to accept each other's forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend(ReadBackend):
    """Everything the whole server stands on."""

    changes: Changes
    intake: Intake
    status_views: StatusViews
    item_views: ItemViews
    item_actions: ItemActions
    burials: Burials
    switches: Switches
    source_changes: SourceChanges
    previews: Previews
    tracks: Tracks
    stories: StoryViews | None = None
    """None: nothing is grouped here."""
    marks: Marks
    parse_lines: ParseLines
    wake: Callable[[], None] = lambda: None
    """Called after an append: there is something to merge."""
    ledger: Ledger | None = None
    """Remembers answers by `Idempotency-Key`; None remembers them in this process only."""
    limits: UploadLimits = UploadLimits()
    try_route: TryRoute | None = None
    """Asks what a route would have sent; None: there is nobody to ask."""
