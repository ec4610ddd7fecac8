"""What waits in a pipeline, and for what: counts of items read by its declared workflows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from tidings.model.pipeline import Pipeline
from tidings.model.workflow import PURE

MERGE = "merge"
LANE_NAMES = {PURE: "process"}
"""How the lag calls what waits for a lane that has no phase."""

WAITING = frozenset({"open", "parked"})
"""The standings of what has a way to go, now or later."""


class ItemCount(NamedTuple):
    """How many items of a kind stand in a state."""

    pipeline: str
    kind: str
    state: str
    standing: str
    items: int
    leased: int
    due: int | None
    changed_at: int
    since: int
    """When the one that stands there longest came to its state."""


class Standing(NamedTuple):
    """How many items of a kind stand so in a state."""

    kind: str
    state: str
    standing: str
    items: int


def queues(pipeline: Pipeline | None, counts: Iterable[Standing]) -> dict[str, int]:
    """Count what waits for each lane, by the declared workflows: names of states mean nothing here."""
    waiting: dict[str, int] = defaultdict(int)
    workflows = pipeline.workflows if pipeline is not None else {}
    for each in counts:
        workflow = workflows.get(each.kind)
        ways = workflow.automatic_from(each.state) if workflow is not None else ()
        if ways and each.standing in WAITING:
            waiting[ways[0].lane] += each.items
    return dict(waiting)


def phases(pipeline: Pipeline | None, counts: Iterable[Standing]) -> dict[str, int]:
    """Count what waits for each phase, such as `summarize`: the workflows say which states are which."""
    waiting: dict[str, int] = defaultdict(int)
    workflows = pipeline.workflows if pipeline is not None else {}
    for each in counts:
        workflow = workflows.get(each.kind)
        phase = workflow.phase_of(each.state) if workflow is not None else None
        if phase is not None and each.standing in WAITING:
            waiting[phase] += each.items
    return dict(waiting)


def dead_by_transition(pipeline: Pipeline | None, counts: Iterable[Standing]) -> dict[str, int]:
    """Count dead letters by the transition they failed in; where a state has none of its own, by the state."""
    found: dict[str, int] = defaultdict(int)
    workflows = pipeline.workflows if pipeline is not None else {}
    for each in counts:
        if each.standing == "dead":
            ways = workflows[each.kind].automatic_from(each.state) if each.kind in workflows else ()
            found[ways[0].name if ways else each.state] += each.items
    return dict(found)


def lags(pipeline: Pipeline | None, counts: Iterable[ItemCount], now: int) -> dict[str, float]:
    """Return per phase for how long the oldest item has waited for it, whether due, parked, leased or postponed."""
    waits: dict[str, float] = {}
    workflows = pipeline.workflows if pipeline is not None else {}
    for each in counts:
        workflow = workflows.get(each.kind)
        ways = workflow.automatic_from(each.state) if workflow is not None else ()
        if workflow is None or not ways or each.standing not in WAITING:
            continue
        phase = workflow.phase_of(each.state) or LANE_NAMES.get(ways[0].lane, ways[0].lane)
        waits[phase] = max(waits.get(phase, 0.0), round((now - each.since) / 1000, 1))
    return waits
