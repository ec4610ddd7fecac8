"""One attempt at an item: what it gathers while it chooses, performs and takes its steps. Pure: clocks are passed in.

Three parties make attempts: a worker on items it has leased, a worker on findings it reserved in the log before they
are items, and an operator who names a transition. `model.course` leads each of them to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.model.item import Finding, Lease, Link, Step, split_ref
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Deliver, Pipeline, no_deliveries
from tidings.model.publication import Shown
from tidings.model.workflow import Transition, Work, Workflow

Bodies = Mapping[str, bytes]
"""Accepted bodies of other items by ref."""
_ADVANCE = Advance()
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Attempt:
    """What one attempt has gathered so far."""

    lease: Lease
    work: Work
    workflow: Workflow
    pipeline: Pipeline
    deliver: Deliver = no_deliveries
    state: str = ""
    body: Any = None
    links: tuple[Link, ...] | None = None
    linked_at: int = -1
    """Which of the steps stated them."""
    children: tuple[Finding, ...] = ()
    steps: list[Step] = field(default_factory=list)
    due_at: int | None = None
    accepts: bool = False
    presents: bool = False
    shown: Shown | None = None
    needs: tuple[str, ...] = ()
    """The refs of other items that the next step wants to see."""
    asked: Transition | None = None
    """The step that named them."""

    def __post_init__(self) -> None:
        self.state = self.lease.state


def choose(attempt: Attempt) -> Transition | None:
    """Return the first transition out of the state whose criterion holds."""
    for transition in attempt.workflow.following.get(attempt.state, ()):
        if transition.criterion is None or transition.criterion(attempt.work):
            return transition
    return None


def relate(attempt: Attempt, bodies: Bodies) -> None:
    """Show an attempt the other items it needs; one that cannot be read is absent, as a missing one is."""
    for name in attempt.needs:
        # An item may look at another kind, whose bodies only that kind's workflow can read.
        workflow = attempt.pipeline.workflows.get(split_ref(name)[0])
        if workflow is None or name not in bodies:
            continue
        try:
            attempt.work.related[name] = workflow.decode(bodies[name])
        except (msgspec.DecodeError, msgspec.ValidationError):
            continue


def perform(attempt: Attempt, transition: Transition) -> Outcome:
    """Run a processor that never waits."""
    # The workflow was checked when it was declared: what is performed here is pure, so it returns its outcome at once.
    return transition.processor(attempt.work) if transition.processor is not None else _ADVANCE  # type: ignore[return-value]


def take(attempt: Attempt, transition: Transition, outcome: Advance, seconds: float) -> None:
    """Note what a step brought. Publish first: if the card cannot be made, the step fails and leaves nothing."""
    work = attempt.work
    if outcome.way is not None:
        transition = attempt.workflow.chosen_from(attempt.state, outcome.way)
    if transition.publishes:
        _publish(attempt, outcome)
    if outcome.presentation is not msgspec.UNSET:
        attempt.presents, attempt.shown = True, attempt.pipeline.show(outcome.presentation)
    if outcome.body is not None:
        attempt.body = work.body = outcome.body
    if outcome.links is not None:
        attempt.links, attempt.linked_at = outcome.links, len(attempt.steps)
    if outcome.children:
        attempt.children += outcome.children
    attempt.due_at = outcome.due_at
    attempt.steps.append(_step(transition, outcome, seconds))
    attempt.state = work.state = transition.target
    attempt.asked = None  # a cycle may come back to the same step, which looks again


def _publish(attempt: Attempt, outcome: Advance) -> None:
    """Make the card and the notices of what the step leaves."""
    kind, work, before = attempt.lease.kind, attempt.work, attempt.work.body
    presenter, announce = attempt.pipeline.presenters.get(kind), attempt.pipeline.announce.get(kind)
    try:
        if outcome.body is not None:
            work.body = outcome.body
        shown = attempt.pipeline.show(presenter(attempt.lease.key, work.body)) if presenter is not None else None
        deliveries = attempt.deliver(work, announce(work)) if announce is not None else ()
    except BaseException:
        work.body = before
        raise
    attempt.accepts, attempt.shown = True, shown
    attempt.children += deliveries


def _step(transition: Transition, outcome: Advance, seconds: float) -> Step:
    ms = int(seconds * 100_000) / 100  # to hundredths, in a third of the time that rounding takes
    made = outcome.provenance
    if made is None:
        return Step(transition.name, transition.target, ms, transition.criterion_name, None, outcome.note)
    return Step(
        transition.name,
        transition.target,
        ms,
        transition.criterion_name,
        note=outcome.note,
        cost_micros=made.cost_micros,
        tokens=made.tokens_in + made.tokens_out,
        model=made.model,
    )
