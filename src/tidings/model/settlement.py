"""How an attempt ends, ready to be written in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from tidings.model.item import Finding, Kept, Lease, Link, Standing
from tidings.model.publication import Presentation
from tidings.model.workflow import PURE


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


LogRow = tuple[int, str, str, str, int, bytes]
"""A finding as the log keeps it: its place, kind, key, fingerprint, priority, payload."""
FIRST_TOKEN = 1
"""Whoever runs ahead has the first right to an item."""


class Ahead(msgspec.Struct, frozen=True, dict=True):
    """A batch of the log, some findings of which one worker may run before their items are born."""

    pipeline: str
    token: int
    rows: list[LogRow]
    """All findings of the batch."""
    chosen: list[int]
    """Where in it those stand that may be run."""
    ids: Sequence[int]
    """The numbers their items will have."""
    starts: Mapping[str, str]
    """The state each kind begins in."""
    granted_at: int
    until: int

    @property
    def through(self) -> int:
        """The place in the log up to which the batch reaches."""
        return self.rows[-1][0]

    @cached_property
    def leases(self) -> list[Lease]:
        """What may be run. Whoever runs it makes these: while a batch is taken, others wait to write."""
        return [self._lease(self.rows[at], item) for at, item in zip(self.chosen, self.ids, strict=True)]

    def _lease(self, row: LogRow, item: int) -> Lease:
        _, kind, key, _, priority, payload = row
        return Lease(
            item, self.pipeline, kind, key, self.starts[kind], FIRST_TOKEN, 1, 1, priority, self.granted_at, self.until,
            None, 0, self.granted_at, payload, None, PURE,
        )  # fmt: skip


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
