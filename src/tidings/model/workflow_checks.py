"""What a declared workflow must hold to: nothing in it is stuck, out of reach, or moves for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.model.errors import Misconfigured

if TYPE_CHECKING:
    from tidings.model.workflow import Transition, Workflow


def check(workflow: Workflow) -> None:
    """Refuse a declaration that could leave an item stuck or moving for ever."""
    _check_names(workflow)
    _check_retries(workflow)
    for state in workflow.states:
        _check_state(workflow, state)
    _check_reachable(workflow)
    _check_cycles(workflow)


def _check_names(workflow: Workflow) -> None:
    known = set(workflow.states)
    if len(known) != len(workflow.states):
        raise Misconfigured(f"{workflow.kind}: a state is declared twice")
    named = {workflow.start, *workflow.terminal, *workflow.failures, *workflow.phases}
    for transition in workflow.transitions:
        named |= {transition.target, *transition.named_sources}
    if unknown := sorted(named - known):
        raise Misconfigured(f"{workflow.kind}: unknown states {', '.join(unknown)}")
    names = [t.name for t in workflow.transitions]
    if len(set(names)) != len(names):
        raise Misconfigured(f"{workflow.kind}: two transitions share a name")
    entered = {t.target for t in workflow.transitions}
    starts = [s for s in workflow.states if s not in entered and s != workflow.start]
    if starts:
        raise Misconfigured(f"{workflow.kind}: nothing leads to {', '.join(starts)}: a second start, or unreachable")


def _check_retries(workflow: Workflow) -> None:
    declared = {t.name: t for t in workflow.transitions}
    for transition in workflow.transitions:
        if transition.trigger == "chosen" and (transition.processor or transition.criterion):
            raise Misconfigured(f"{workflow.kind}: {transition.name} is chosen by a processor, so it has none itself")
        if transition.trigger != "automatic" and not transition.is_pure:
            raise Misconfigured(f"{workflow.kind}: {transition.name} may be performed by hand, so it must be pure")
        for ending in (transition.retry.exhausted, transition.retry.refused):
            if ending in (None, "dead_letter", "park"):
                continue
            if ending not in declared or declared[ending].trigger in ("automatic", "chosen"):
                raise Misconfigured(
                    f"{workflow.kind}: {transition.name} ends in {ending!r}, which is no manual transition"
                )


def _check_state(workflow: Workflow, state: str) -> None:
    ways = workflow.ways_from(state)
    if not ways and state not in workflow.terminal:
        raise Misconfigured(f"{workflow.kind}: state {state} has no way out and is not terminal")
    if state in workflow.terminal and any(t.trigger == "automatic" for t in ways):
        raise Misconfigured(f"{workflow.kind}: terminal state {state} has an automatic way out")
    if len({t.lane for t in ways if t.trigger == "automatic"}) > 1:
        raise Misconfigured(f"{workflow.kind}: the automatic ways out of {state} use different lanes")


def _check_reachable(workflow: Workflow) -> None:
    reached, frontier = {workflow.start}, [workflow.start]
    while frontier:
        state = frontier.pop()
        for transition in workflow.ways_from(state):
            if transition.target not in reached:
                reached.add(transition.target)
                frontier.append(transition.target)
    if lost := [s for s in workflow.states if s not in reached]:
        raise Misconfigured(f"{workflow.kind}: no way leads from {workflow.start} to {', '.join(lost)}")


def _check_cycles(workflow: Workflow) -> None:
    edges = {
        s: [t.target for t in workflow.ways_from(s) if t.trigger == "automatic" and not _bounded(workflow, t)]
        for s in workflow.states
    }
    done: set[str] = set()
    for root in workflow.states:
        path: list[str] = []
        _walk(root, edges, path, done, workflow.kind)


def _bounded(workflow: Workflow, transition: Transition) -> bool:
    return transition.name in workflow.bounded_cycles and transition.criterion is not None


def _walk(state: str, edges: dict[str, list[str]], path: list[str], done: set[str], kind: str) -> None:
    if state in path:
        circle = " -> ".join([*path[path.index(state) :], state])
        raise Misconfigured(f"{kind}: automatic transitions form a cycle without a bound: {circle}")
    if state in done:
        return
    path.append(state)
    for target in edges[state]:
        _walk(target, edges, path, done, kind)
    path.pop()
    done.add(state)
