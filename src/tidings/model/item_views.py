"""What operators see of single items: in lists, whole, their deliveries and dead letters, and what happened to them."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec


class MoveView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One move inside an attempt."""

    transition: str
    from_state: str
    to_state: str
    ms: float = 0.0
    criterion: str | None = None
    verdict: str | None = None
    """What the criterion said: `yes`, or why not."""
    note: str | None = None
    cost_micros: int = 0
    tokens: int = 0
    model: str | None = None


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a life line."""

    at: int
    kind: str
    attempt: int
    from_state: str
    to_state: str
    ended: str
    error: str | None = None
    actor: str | None = None
    steps: list[MoveView] = []
    token: int = 0


class DeliveryView(msgspec.Struct, frozen=True, kw_only=True):
    """One notice to one channel."""

    id: int
    pipeline: str
    key: str
    channel: str
    title: str
    parent: str
    state: str
    standing: str
    attempts: int
    ambiguous: int = 0
    due_at: int | None = None
    sent_at: int | None = None
    message_id: str | None = None
    answer: str | None = None
    last_error: str | None = None
    waits_for: str = ""
    """What it rests for, such as a digest or the end of the quiet hours."""
    created_at: int = 0


class ItemRow(msgspec.Struct, frozen=True, kw_only=True):
    """An item in a list."""

    id: int
    pipeline: str
    kind: str
    key: str
    title: str
    state: str
    standing: str
    attempts: int
    due_at: int | None = None
    lease_until: int | None = None
    last_error: str | None = None
    cause: str | None = None
    revision: int = 1
    created_at: int = 0
    changed_at: int = 0


class ItemView(msgspec.Struct, frozen=True, kw_only=True):
    """One item, whole: its row, bodies, life line, relatives, and what may be done with it."""

    item: ItemRow
    body: Any
    accepted: Any = None
    accepted_revision: int | None = None
    waiting_revision: int | None = None
    life: list[StepView] = []
    deliveries: list[DeliveryView] = []
    parents: list[str] = []
    children: list[str] = []
    transitions: list[str] = []
    """What a person may perform now."""
    waits_for: str = ""
    """What happens next, in one sentence."""


class DeadGroup(msgspec.Struct, frozen=True):
    """Dead letters that share a cause."""

    pipeline: str
    kind: str
    state: str
    cause: str
    count: int
    first_at: int
    last_at: int
    sample_id: int
    sample_key: str


class Event(msgspec.Struct, frozen=True):
    """Something that happened, for the live stream."""

    id: int
    at: int
    pipeline: str
    kind: str
    key: str
    what: str
    from_state: str
    to_state: str
    item: int


class TombstoneView(msgspec.Struct, frozen=True):
    """What is remembered of a removed item."""

    pipeline: str
    kind: str
    key: str
    fingerprint: str
    buried_at: int
    forget_at: int
    item: int = 0
    """The number it had; 0 where an earlier release removed it."""
    reason: str | None = None
    """Why it was removed and how it stood then: the last line of its journal, kept as long as the tombstone."""


class Replayed(NamedTuple):
    """What a replay did."""

    items: int
    """How many are processed again, or would be."""
    skipped: int
    """How many were left alone because they never came past the state."""
    calls: int = 0
    """How many questions to an AI endpoint their last time took; only a dry run tells."""
    tokens: int = 0
    cost_micros: int = 0
