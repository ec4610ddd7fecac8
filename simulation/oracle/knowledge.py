"""What the oracle knows from outside: which copies people and lists offered, and what they were told of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from simulation.oracle.snapshot import LogRow, Name
from tidings.model.item import Appended, Finding
from tidings.model.workflow import Workflow


class Violation(NamedTuple):
    """A broken invariant."""

    rule: str
    what: str


class Copy(NamedTuple):
    """One copy as the log holds it."""

    place: int
    fingerprint: str
    mark: int
    fate: str


@dataclass
class Knowledge:
    """Shared by all rules."""

    workflows: dict[tuple[str, str], Workflow]
    slack_ms: int = 0
    """How far the database's clock may run ahead of ours within one commit: 0 on SQLite."""
    violations: list[Violation] = field(default_factory=list)
    logs: dict[Name, list[Copy]] = field(default_factory=dict)
    """Every copy that was durable in the log, in its order, since its item was last forgotten."""
    excused: dict[Name, set[int]] = field(default_factory=dict)
    """Marks of copies that ended otherwise than by being merged: dead, rejected, moved by hand, buried."""
    ever: set[tuple[Name, str]] = field(default_factory=set)
    """Name and fingerprint of every copy that was ever durable."""
    passed: dict[str, int] = field(default_factory=dict)
    """How far each source's cursor has come."""
    acknowledged: int = 0
    jumps: list[float] = field(default_factory=list)
    """When the database's clock jumped, by the loop's time."""

    def break_rule(self, rule: str, what: str) -> None:
        """Note a broken invariant; the run ends with the first."""
        self.violations.append(Violation(rule, what))

    def takes_turns(self, name: Name) -> bool:
        """Tell whether an item's copies are merged in turn."""
        workflow = self.workflows.get(name[:2])
        return workflow is not None and workflow.in_turn

    def log(self, row: LogRow) -> None:
        """Note a copy that became durable."""
        body = decoded(row.payload)
        copy = Copy(row.id, row.fingerprint, own_mark(row.pipeline, row.payload), body.get("fate", ""))
        self.logs.setdefault(row.name, []).append(copy)
        self.ever.add((row.name, row.fingerprint))

    def excuse(self, name: Name, body: bytes | None) -> None:
        """Ask no more for the marks of a copy that has ended."""
        if body is not None:
            self.excused.setdefault(name, set()).update(marks_of(name[0], body))

    def forget(self, name: Name) -> None:
        """Know nothing more of a name."""
        self.logs.pop(name, None)
        self.excused.pop(name, None)


@dataclass(frozen=True)
class Answer:
    """What someone who offered copies was told."""

    findings: tuple[Finding, ...]
    appended: Appended


@lru_cache(maxsize=20_000)
def decoded(body: bytes) -> dict[str, Any]:
    """Read a body."""
    value = msgspec.json.decode(body)
    return value if isinstance(value, dict) else {}


@lru_cache(maxsize=20_000)
def marks_of(pipeline: str, body: bytes) -> frozenset[int]:
    """Return the marks of all copies that a body holds: a note's own list, a Hacker News item's kids."""
    value = decoded(body)
    if pipeline == "hacker_news":
        return frozenset(value.get("kids") or ())
    return frozenset({value.get("mark", 0), *value.get("marks", ())})


def own_mark(pipeline: str, payload: bytes) -> int:
    """Return the mark that only this copy has."""
    value = decoded(payload)
    return int(value["kids"][-1]) if pipeline == "hacker_news" else int(value.get("mark", 0))
