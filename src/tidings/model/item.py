"""The nouns that travel: findings come in, items are remembered, leases let one worker act.

Those made for every item on its way are Structs: making one costs a tenth of a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

Standing = Literal["open", "done", "waits", "parked", "dead", "rejected"]
"""How an item stands in its state.

open: processed when due. done: in a terminal state. waits: only a person can move it. parked: long backoff, visible.
dead: a dead letter. rejected: ended on purpose.
"""

STANDINGS: tuple[Standing, ...] = ("open", "done", "waits", "parked", "dead", "rejected")

HIGH, NORMAL, LOW = 0, 1, 2
AWAITS = "awaits"
"""The relation of an item to one that it needs and that is not accepted yet. When that one is accepted, the item begins
again."""
PLACED = "placed"
"""The relation of an item to the parent its card names, where that is not the one the item names itself."""
MISPLACED = "misplaced"
"""The relation of an item to the parent it has by now, where its card names another: it begins again soon."""
NOT_HERE_YET = "is not here yet"
"""What the life line says of a parent that an item names and that was never accepted."""
TOP = ""
"""What an item at the top of a thread names as its parent: it stands below nothing, whatever other items state."""
PRIORITIES = (HIGH, NORMAL, LOW)


class Finding(msgspec.Struct, frozen=True):
    """What a source reports, before we know whether it is new. `payload` is a JSON document."""

    pipeline: str
    kind: str
    key: str
    fingerprint: str
    payload: bytes
    priority: int = NORMAL


class Link(msgspec.Struct, frozen=True):
    """A statement, made by one of the two, that `child` belongs to `parent`; both are refs (`kind:key`)."""

    child: str
    parent: str
    relation: str
    position: int | None = None


class Item(NamedTuple):
    """One remembered thing: its narrow row, column by column. Times are UTC milliseconds."""

    id: int
    pipeline: str
    kind: str
    key: str
    fingerprint: str
    state: str
    standing: Standing
    lane: str | None
    priority: int
    due_at: int | None
    attempts: int
    lost_leases: int
    lease_owner: str | None
    lease_token: int
    lease_until: int | None
    revision: int
    accepted_revision: int | None
    waiting_revision: int | None
    intake_id: int
    """The last finding of the log that was merged into it; 0 for children."""
    last_error: str | None
    cause: str | None
    created_at: int
    changed_at: int
    state_since: int
    failing_since: int | None

    @property
    def ref(self) -> str:
        """The name links use."""
        return ref(self.kind, self.key)


class LogRow(NamedTuple):
    """A finding as the log keeps it; its id is its place in the log."""

    id: int
    kind: str
    key: str
    fingerprint: str
    priority: int
    payload: bytes


class Leased(msgspec.Struct, frozen=True):
    """The right of a worker that claimed an item: its lease has not been taken over, and has not run out."""

    token: int


class Reserved(msgspec.Struct, frozen=True):
    """The right of a worker that reserved a stretch of the log: no process has merged the stretch since."""

    token: ClassVar[int] = 1
    """An item that is born with its first attempt made has had one lease."""
    batch: int
    finding: LogRow


class ByHand(msgspec.Struct, frozen=True):
    """The right of an operator: the item is as it was seen, whether it is leased or not."""

    token: int
    actor: str
    reason: str


Right = Leased | Reserved | ByHand
"""By what right an attempt's end is written. The right chooses the guarded statement (`store.items.settle`)."""


class Lease(msgspec.Struct, frozen=True):
    """The right to act on one item until a time, with what is needed to act: the columns of a claim."""

    id: int
    pipeline: str
    kind: str
    key: str
    state: str
    lane: str | None
    """Where it was claimed."""
    token: int
    attempts: int
    revision: int
    priority: int
    granted_at: int
    """By the database's clock."""
    lease_until: int
    failing_since: int | None
    lost_leases: int
    state_since: int
    body: bytes
    accepted: bytes | None
    """The body readers see, where an earlier revision was accepted."""
    reserved: Reserved | None = None
    """Set for an item that is not born yet."""

    @property
    def right(self) -> Right:
        """By what right the end of the attempt is written."""
        return self.reserved or Leased(self.token)


HELD = "yes"
"""The verdict of a criterion that holds."""


class Step(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One move inside an attempt. The journal keeps it as a short array, without the defaults at its end."""

    transition: str
    to_state: str
    ms: float = 0.0
    criterion: str | None = None
    refusal: str | None = None
    """Why the criterion did not hold; None: it held."""
    note: str | None = None
    cost_micros: int = 0
    tokens: int = 0
    model: str | None = None
    from_state: str = ""
    """Where the step before it ended; filled in when the journal is read."""

    @property
    def verdict(self) -> str | None:
        """What the criterion said: `yes`, or why not; None where there is no criterion."""
        return None if self.criterion is None else self.refusal or HELD


JournalKind = Literal[
    "born",
    "changed",
    "attempt",
    "swept",
    "released",
    "manual",
    "revived",
    "replayed",
    "retired",
    "adopted",
    "woken",
]


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One line of an item's life."""

    id: int
    item: int
    at: int
    kind: str
    token: int
    attempt: int
    from_state: str
    to_state: str
    ended: str
    """How it ended: advanced, retried, postponed, parked, dead, rejected, ..."""
    error: str | None
    actor: str | None
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line or entry that could not become a finding."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Appended:
    """What the intake log made of a page."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    buried: tuple[int, ...] = ()
    """The places, in the page, of findings that are new but removed for good; of a sum only their number counts."""

    @property
    def accepted(self) -> int:
        """How many were written to the log."""
        return self.new + self.changed

    def refusals(self, findings: Sequence[Finding], lines: Sequence[int]) -> list[Rejected]:
        """Name the lines whose items were removed for good: they are neither accepted nor duplicates."""
        return [Rejected(lines[place], _removed(findings[place])) for place in self.buried]

    def __add__(self, other: Appended) -> Appended:
        return Appended(
            self.new + other.new,
            self.changed + other.changed,
            self.unchanged + other.unchanged,
            self.buried + other.buried,
        )


def _removed(finding: Finding) -> str:
    name = f"{finding.pipeline} {finding.kind} {finding.key}"
    return f"{finding.key} was removed for good; `tidings tombstones lift {name}` lets it in again"


def ref(kind: str, key: str) -> str:
    """Name an item inside its pipeline, for links."""
    return f"{kind}:{key}"


def split_ref(name: str) -> tuple[str, str]:
    """Undo `ref`; keys may contain colons, kinds may not."""
    kind, _, key = name.partition(":")
    return kind, key


def above(name: str, relation: str) -> str:
    """Name whatever stands above an item by all that is stated; a prefetch may ask for it."""
    return f"{name}\x1f{relation}"


def split_above(name: str) -> tuple[str, str]:
    """Undo `above`; the relation is empty where an item itself is named."""
    item, _, relation = name.partition("\x1f")
    return item, relation


def fingerprint(*fields: Any) -> str:
    """Hash the fields whose change counts; any JSON-able values."""
    return blake2b(msgspec.json.encode(fields), digest_size=12).hexdigest()
