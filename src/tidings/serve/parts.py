"""What the server is given: the store's faces, the declared pipelines, and values. `app.py` fills it in."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidings.model.clock import Clock, SystemClock
from tidings.model.contracts import Desk, Executor, Index, Intake, Ledger, Links, Shelf
from tidings.model.errors import BadInput
from tidings.model.pipeline import Pipeline

ParseLines = Callable[[bytes], Iterator[tuple[int, "Any | BadInput"]]]
"""From an uploaded body, a JSON array or JSON lines, to numbered values; a line that cannot be read gives its error."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How much one client may ask; a minute's worth may come at once.

    Reads from this machine itself are not limited: they are open, and cheap.
    """

    reads_per_minute: int = 3_000
    writes_per_minute: int = 6_000
    logins_per_minute: int = 10
    streams: int = 64
    """Live event streams at once, over all clients."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large an upload may be."""

    one_bytes_max: int = 1 << 20
    bulk_bytes_max: int = 10 << 20
    bulk_lines_max: int = 5_000
    body_seconds_max: float = 30


def _unobserved(_route: str, _status: int, _seconds: float) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything the server stands on."""

    pipelines: Mapping[str, Pipeline]
    executor: Executor
    shelf: Shelf
    index: Index
    links: Links
    intake: Intake
    desk: Desk
    parse_lines: ParseLines
    metrics: Callable[[], tuple[bytes, str]]
    """Return the exposition and its content type."""
    ready: Callable[[], dict[str, str]]
    """Return the problems by part; empty means ready."""
    wake: Callable[[], None] = lambda: None
    """Called after an append: there is something to merge."""
    observe: Callable[[str, int, float], None] = _unobserved
    """Called after every request with its route, status and seconds."""
    ledger: Ledger | None = None
    """Remembers answers by `Idempotency-Key`; None remembers them in this process only."""
    clock: Clock = field(default_factory=SystemClock)
    monotonic: Callable[[], float] = time.monotonic
    """Measures how long something is remembered; never goes back."""
    is_demo: bool = False
    loopback: bool = True
    """The server listens on the loopback interface only."""
    hosts: frozenset[str] = frozenset()
    """Names by which we may be called besides the loopback ones; without ports."""
    root_path: str = ""
    """Where we live below a proxy, such as `/tidings`."""
    cors_origins: frozenset[str] = frozenset()
    rates: Rates = Rates()
    limits: Limits = Limits()
    version: str = "0"
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Signs form tokens; random unless several servers are to accept each other's forms."""
