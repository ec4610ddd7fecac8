"""How an attempt ends, ready to be written in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tidings.model.item import Finding, Kept, Lease, Link, Standing
from tidings.model.publication import Presentation


class Settlement(msgspec.Struct):
    """The end of one attempt; written only if the lease still holds."""

    id: int
    pipeline: str
    kind: str
    key: str
    token: int
    state_before: str
    """The state at the claim; the guard compares it."""
    state: str
    standing: Standing
    lane: str | None
    attempts: int
    revision: int
    ended: str
    """advanced, retried, postponed, parked, dead, rejected, failed"""
    delay_ms: int | None = None
    """Due this long after the settle, by the database's clock; None: not due by itself."""
    due_at: int | None = None
    """Or due at this time; wins over `delay_ms`."""
    error: str | None = None
    cause: str | None = None
    """What dead letters are grouped by."""
    failing_since: int | None = None
    body: bytes | None = None
    accepts: bool = False
    """The working revision becomes the accepted one."""
    presents: bool = False
    """Card and document are replaced by `presentation`; None there withdraws them."""
    presentation: Presentation | None = None
    links: tuple[Link, ...] | None = None
    children: tuple[Finding, ...] = ()
    steps: Sequence[Kept] = ()
    """They begin in `state_before`, and each where the one before it ended."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a batch."""

    done: frozenset[int]
    stale: frozenset[int]
    """Their leases no longer held: nothing of theirs was written."""
    born: int = 0
    """Items that are new to the workers by this: born, or begun again."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge made of the log."""

    read: int = 0
    born: int = 0
    changed: int = 0
    unchanged: int = 0
    checkpoint: int = 0
    stale: int = 0
    """Findings that were run ahead by a right that no longer held: nothing of it was written."""
    ran: int = 0
    """Items that were born as their run ahead left them."""
    woken: int = 0
    """Items that begin again because somebody they awaited was born."""
    vain: frozenset[int] = frozenset()
    """Items that were run ahead, but born by an earlier batch meanwhile: their runs were thrown away."""
    waits: bool = False
    """An earlier batch is not written yet: nothing was written, and the same may be tried again."""

    def __add__(self, later: Merged) -> Merged:
        return Merged(
            self.read + later.read,
            self.born + later.born,
            self.changed + later.changed,
            self.unchanged + later.unchanged,
            later.checkpoint,
            self.stale + later.stale,
            self.ran + later.ran,
            self.woken + later.woken,
            self.vain | later.vain,
            self.waits or later.waits,
        )


class Ahead(msgspec.Struct, frozen=True):
    """A batch of findings, some of which one worker may run before their items are born."""

    pipeline: str
    token: int
    arrivals: list[tuple[Finding, int]]
    """All findings of the batch with their places in the log."""
    leases: list[Lease]
    """Those that may be run, with the numbers their items will have."""
    places: list[int]
    """Where the findings of the leases stand in the log."""

    @property
    def through(self) -> int:
        """The place in the log up to which the batch reaches."""
        return self.arrivals[-1][1]


@dataclass(frozen=True, slots=True)
class Swept:
    """What the sweeper found and did."""

    expired: int = 0
    """Leases returned to the queue."""
    poisoned: int = 0
    """Items that lost their lease for the last time."""
    ambiguous: int = 0
    """Deliveries whose send may have begun when the lease was lost."""
    unknown: int = 0
    """Items of a kind or state nobody here knows: parked."""
    tidied: int = 0
