"""A6, A8, C1, C2, C4: each item's journal tells one life of declared moves, and its row stands where that ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from simulation.oracle.knowledge import Knowledge
from simulation.oracle.snapshot import ItemRow, JournalRow, Snapshot
from tidings.model.workflow import Transition, Workflow, leaves

STEPS_MAX = 100
RETRY_AFTER_MS = 20_000
"""The longest wait an outside service here asks for."""


@dataclass
class Lives:
    """Remembers where each item's journal ended, and which leases are closed."""

    known: Knowledge
    states: dict[int, str] = field(default_factory=dict)
    closed: set[tuple[int, int]] = field(default_factory=set)

    def check(self, before: Snapshot, now: Snapshot) -> None:
        """Follow the new lines of the journal."""
        for row in now.new_journal:
            item = now.items.get(row.item)
            if item is None:
                continue  # its life was written and removed in one commit
            self._follow(item, row)
            if row.ended == "retried":
                self._delay(before, item, row, now)
        for number in {row.item for row in now.new_journal}:
            item = now.items.get(number)
            if item is not None and item.state != self.states[number]:
                self.known.break_rule("A6", f"{item} is in {item.state}, its journal ends in {self.states[number]}")

    def _follow(self, item: ItemRow, row: JournalRow) -> None:
        workflow = self.known.workflows[item.pipeline, item.kind]
        state = self.states.get(item.id, row.from_state)
        if row.from_state != state:
            self.known.break_rule("A6", f"{item}: a line begins in {row.from_state}, the one before ended in {state}")
        self.states[item.id] = row.to_state
        self._close(item, row)
        if row.kind in ("attempt", "born", "manual") and row.from_state:
            self._steps(workflow, item, row)
        elif row.kind in ("changed", "woken") and row.to_state != workflow.start:
            self.known.break_rule("C1", f"{item} began again in {row.to_state}")

    def _close(self, item: ItemRow, row: JournalRow) -> None:
        """A6: at most one line closes each lease."""
        if row.kind in ("attempt", "released") or (row.kind == "swept" and row.ended == "lost"):
            if (item.id, row.token) in self.closed:
                self.known.break_rule("A6", f"two lines close lease {row.token} of {item}")
            self.closed.add((item.id, row.token))

    def _steps(self, workflow: Workflow, item: ItemRow, row: JournalRow) -> None:
        """C1, C4, A8: every step is declared, starts where the one before ended, and leaves no terminal state."""
        state = row.from_state
        steps = _decoded(row.steps)
        if steps and row.kind != "manual" and state in workflow.terminal:
            self.known.break_rule("A8", f"{item} left {state} by itself")
        if len(steps) > STEPS_MAX:
            self.known.break_rule("C4", f"{item} made {len(steps)} steps in one attempt")
        for name, target in steps:
            transition = workflow.named(name)
            if not leaves(transition, state) or target not in (state, transition.target):
                self.known.break_rule("C1", f"{item} went from {state} to {target} by {name}")
            self._trigger(item, row, transition)
            state = target
        if row.to_state != state:
            self.known.break_rule("C1", f"{item} moved from {state} to {row.to_state} without a step")

    def _trigger(self, item: ItemRow, row: JournalRow, transition: Transition) -> None:
        if row.kind == "manual" and transition.trigger == "automatic":
            self.known.break_rule("C1", f"{transition.name} of {item} is not for hands")
        if row.kind == "manual" and not (row.actor and row.error):
            self.known.break_rule("C1", f"nobody says who moved {item} by hand, or why")
        if row.kind != "manual" and transition.trigger == "manual" and row.ended != "failed":
            self.known.break_rule("C1", f"{transition.name} of {item} happened by itself")

    def _delay(self, before: Snapshot, item: ItemRow, row: JournalRow, now: Snapshot) -> None:
        """C2: the wait before a retry lies within its policy's bounds."""
        workflow = self.known.workflows[item.pipeline, item.kind]
        if item.due_at is None or item.state != row.to_state or item.waiting_revision != _waiting(before, item):
            return
        policies = [transition.retry for transition in workflow.next_from(row.to_state)]
        delay = item.due_at - now.now_ms
        for policy in policies:
            wait = min(policy.cap_seconds, policy.base_seconds * 2.0 ** (item.attempts - 1)) * 1000
            low, high = wait * (1 - policy.jitter), max(wait * (1 + policy.jitter), RETRY_AFTER_MS)
            if low - 2 - self.known.slack_ms <= delay <= high + 2 + self.known.slack_ms:
                return
        self.known.break_rule("C2", f"{item} waits {delay} ms after attempt {item.attempts} in {item.state}")


def _waiting(before: Snapshot, item: ItemRow) -> int | None:
    was = before.items.get(item.id)
    return None if was is None else was.waiting_revision


def _decoded(steps: bytes | None) -> list[tuple[str, str]]:
    """Read steps as (transition, target)."""
    kept: list[Any] = msgspec.json.decode(bytes(steps)) if steps else []
    return [(s["transition"], s["to_state"]) if isinstance(s, dict) else (s[0], s[1]) for s in kept]
