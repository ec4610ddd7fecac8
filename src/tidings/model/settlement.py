"""How an attempt ends, and by which right that is written; all in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from tidings.model.item import Finding, Lease, Link, LogRow, Reserved, Right, Standing, Step
from tidings.model.publication import Shown
from tidings.model.workflow import PURE


class Settlement(msgspec.Struct):
    """The end of one attempt; written only if its right still holds."""

    id: int
    pipeline: str
    kind: str
    key: str
    right: Right
    state_before: str
    """The state at the claim; the guard compares it."""
    state: str
    standing: Standing
    attempts: int
    revision: int
    ended: str
    """advanced, retried, postponed, parked, dead, rejected, failed, manual"""
    lane: str | None = None
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
    """Card and document are replaced by `shown`; None there withdraws them."""
    shown: Shown | None = None
    links: tuple[Link, ...] | None = None
    linked_at: int = -1
    """Which of the steps stated them."""
    children: tuple[Finding, ...] = ()
    steps: Sequence[Step] = ()
    """The first begins in `state_before`, each other one where the one before it ended."""


class Reservation(msgspec.Struct, frozen=True):
    """A stretch of the log that one worker may run before its items are born: where their lives begin with pure steps.

    It ends with one settle of what was run, which also merges the rest of the stretch. If that does not come in time,
    the stretch is merged as usual, and each item gets attempts of its own.
    """

    pipeline: str
    batch: int
    """The number that proves the right."""
    findings: Sequence[LogRow]
    """Those that may be run: new keys that stand once in the stretch."""
    ids: Sequence[int]
    """The ids their items will have."""
    starts: Mapping[str, str]
    """The state each kind begins in."""
    granted_at: int
    until: int

    def leases(self) -> list[Lease]:
        """Make the leases. Not done in the transaction that reserves: all other writers wait for that on SQLite."""
        return [self._lease(row, item) for row, item in zip(self.findings, self.ids, strict=True)]

    def _lease(self, row: LogRow, item: int) -> Lease:
        return Lease(
            id=item,
            pipeline=self.pipeline,
            kind=row.kind,
            key=row.key,
            state=self.starts[row.kind],
            lane=PURE,
            token=Reserved.token,
            attempts=1,
            revision=1,
            priority=row.priority,
            granted_at=self.granted_at,
            lease_until=self.until,
            failing_since=None,
            lost_leases=0,
            state_since=self.granted_at,
            body=row.payload,
            accepted=None,
            reserved=Reserved(self.batch, row),
        )


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of a stretch of the log."""

    read: int = 0
    born: int = 0
    changed: int = 0
    unchanged: int = 0
    checkpoint: int = 0
    unlisted: tuple[int, ...] = ()
    """Items that the id index has no room for, by this stretch."""
    retired: int = 0
    """How many of them were retired at once."""

    def __add__(self, later: Merged) -> Merged:
        return Merged(
            self.read + later.read,
            self.born + later.born,
            self.changed + later.changed,
            self.unchanged + later.unchanged,
            later.checkpoint or self.checkpoint,
            self.unlisted + later.unlisted,
            self.retired + later.retired,
        )


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a batch."""

    done: frozenset[int]
    stale: frozenset[int]
    """Their right no longer held: nothing of theirs was written."""
    born: int = 0
    """Items that are new to the workers by this: born, or begun again."""
    merged: Merged = Merged()
    """What became of the reserved stretch of the log, where there was one."""
    misplaced: int = 0
    """Items whose cards name another parent than the links do by now; they begin again at once."""
    must_wait: bool = False
    """An earlier stretch of the log is not written yet: nothing was written, and the same may be tried again."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What the sweeper found and did."""

    expired: int = 0
    """Leases returned to the queue."""
    poisoned: int = 0
    """Items that lost their lease for the last time."""
    ambiguous: int = 0
    """Deliveries whose send may have begun when the lease was lost."""
