"""What the database holds at one commit, read by plain SELECTs that know nothing of the store's own statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.support.own_sql import own_sql

from tidings.store.db.database import Database, Tx

Name = tuple[str, str, str]
"""Pipeline, kind, key."""


class ItemRow(NamedTuple):
    """An item."""

    id: int
    pipeline: str
    kind: str
    key: str
    fingerprint: str
    state: str
    standing: str
    lane: str | None
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
    cause: str | None

    @property
    def name(self) -> Name:
        """Pipeline, kind, key."""
        return self.pipeline, self.kind, self.key

    def __str__(self) -> str:
        return f"{self.pipeline} {self.kind} {self.key} (item {self.id})"


class LogRow(NamedTuple):
    """A finding in the intake log."""

    id: int
    pipeline: str
    kind: str
    key: str
    fingerprint: str
    payload: bytes

    @property
    def name(self) -> Name:
        """Pipeline, kind, key."""
        return self.pipeline, self.kind, self.key


class JournalRow(NamedTuple):
    """A line of an item's life."""

    id: int
    item: int
    kind: str
    token: int
    attempt: int
    from_state: str
    to_state: str
    ended: str
    error: str | None
    actor: str | None
    steps: bytes | None


class Tombstone(NamedTuple):
    """What a removed item left."""

    fingerprint: str
    forget_at: int


class Card(NamedTuple):
    """What readers see of an item."""

    id: int
    pipeline: str
    key: str
    revision: int
    sort: int
    expires_at: int | None
    value: bytes


class Schedule(NamedTuple):
    """When a source is asked next, and until when someone has its turn."""

    next_at: int
    lease_owner: str | None
    lease_until: int | None


class Budget(NamedTuple):
    """One day's money of one name."""

    name: str
    day: str
    spent: int
    reserved: int


@dataclass(slots=True)
class Snapshot:
    """All of it."""

    now_ms: int = 0
    items: dict[int, ItemRow] = field(default_factory=dict)
    names: dict[Name, ItemRow] = field(default_factory=dict)
    bodies: dict[int, dict[int, bytes]] = field(default_factory=dict)
    tombstones: dict[Name, Tombstone] = field(default_factory=dict)
    checkpoints: dict[str, int] = field(default_factory=dict)
    cursors: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    reservations: dict[str, int] = field(default_factory=dict)
    """Until when each pipeline's log is reserved."""
    cards: dict[int, Card] = field(default_factory=dict)
    budgets: list[Budget] = field(default_factory=list)
    unmerged: list[LogRow] = field(default_factory=list)
    new_log: list[LogRow] = field(default_factory=list)
    """Findings that were not there at the snapshot before."""
    new_journal: list[JournalRow] = field(default_factory=list)
    last_log: int = 0
    last_journal: int = 0

    @property
    def written(self) -> dict[int, list[JournalRow]]:
        """The new journal rows of each item."""
        rows: dict[int, list[JournalRow]] = {}
        for row in self.new_journal:
            rows.setdefault(row.item, []).append(row)
        return rows


_ITEMS = f"SELECT {', '.join(ItemRow._fields)} FROM items"  # constants
_LOG = f"SELECT {', '.join(LogRow._fields)} FROM intake"  # constants
_JOURNAL = f"SELECT {', '.join(JournalRow._fields)} FROM journal WHERE id > :after ORDER BY id"
_CARDS = f"SELECT {', '.join(Card._fields)} FROM shelf"  # constants


def take(database: Database, before: Snapshot, now_ms: int) -> Snapshot:
    """Read everything; `before` tells what is new."""
    with database.reading() as tx:
        found = Snapshot(now_ms)
        found.items = {row[0]: ItemRow(*row) for row in own_sql(tx, _ITEMS)}
        found.names = {item.name: item for item in found.items.values()}
        for item, revision, body in own_sql(tx, "SELECT item, revision, body FROM bodies"):
            found.bodies.setdefault(item, {})[revision] = bytes(body)
        _read_log(tx, found, before)
        _read_rest(tx, found, before)
    return found


def _read_log(tx: Tx, found: Snapshot, before: Snapshot) -> None:
    checkpoints: list[Any] = own_sql(tx, "SELECT pipeline, checkpoint FROM checkpoints")
    found.checkpoints = dict(checkpoints)
    reservations: list[Any] = own_sql(tx, "SELECT pipeline, max(until) FROM reservations GROUP BY pipeline")
    found.reservations = dict(reservations)
    low = min(found.checkpoints.values(), default=0) if len(checkpoints) > 1 else 0
    for row in own_sql(tx, f"{_LOG} WHERE id > :low ORDER BY id", {"low": min(low, before.last_log)}):
        logged = LogRow(*row)._replace(payload=bytes(row[5]))
        if logged.id > found.checkpoints.get(logged.pipeline, 0):
            found.unmerged.append(logged)
        if logged.id > before.last_log:
            found.new_log.append(logged)
    found.last_log = max((row.id for row in found.new_log), default=before.last_log)


def _read_rest(tx: Tx, found: Snapshot, before: Snapshot) -> None:
    for pipeline, kind, key, *rest in own_sql(
        tx, "SELECT pipeline, kind, key, fingerprint, forget_at FROM tombstones", {}
    ):
        found.tombstones[pipeline, kind, key] = Tombstone(*rest)
    found.cursors = {source: (at, mark) for source, at, mark in own_sql(tx, "SELECT source, cursor, mark FROM cursors")}
    for source, *times in own_sql(tx, "SELECT source, next_at, lease_owner, lease_until FROM schedules"):
        found.schedules[source] = Schedule(*times)
    found.cards = {row[0]: Card(*row)._replace(value=bytes(row[6])) for row in own_sql(tx, _CARDS)}
    found.budgets = [Budget(*row) for row in own_sql(tx, "SELECT name, day, spent, reserved FROM budgets")]
    rows = own_sql(tx, _JOURNAL, {"after": before.last_journal})
    found.new_journal = [JournalRow(*row) for row in rows]
    found.last_journal = rows[-1][0] if rows else before.last_journal
