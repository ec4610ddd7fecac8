"""One attempt: how long it may take, and how far it may go."""

from __future__ import annotations

from dataclasses import replace

from tests import example

from tidings.model.item import Lease
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import Transition, Work, Workflow
from tidings.process.runner import Runner

NOW = 100.0


def a_lease(state: str) -> Lease:
    return Lease(
        id=1,
        pipeline="example",
        kind="thing",
        key="a",
        state=state,
        token=1,
        attempts=1,
        revision=1,
        priority=1,
        granted_at=0,
        lease_until=60_000,
        failing_since=None,
        lost_leases=0,
        state_since=0,
        body=b"{}",
        accepted=None,
    )


def a_runner(workflow: Workflow) -> Runner:
    pipeline: Pipeline = replace(example.pipeline(), workflows={"thing": workflow})
    return Runner({"example": pipeline}, monotonic=lambda: NOW)


def test_the_deadline_comes_before_the_lease_ends() -> None:
    """By the local clock that never jumps; a tenth of the lease is left for what is under way."""
    deadlines: list[float] = []

    def note(work: Work) -> Outcome:
        deadlines.append(work.deadline)
        return Advance()

    workflow = Workflow(
        kind="thing",
        start="new",
        states=("new", "done"),
        terminal=frozenset({"done"}),
        transitions=(Transition("end", "new", "done", processor=note),),
    )
    a_runner(workflow).run_pure(a_lease("new"), 60.0)

    assert deadlines == [NOW + 54.0]


def test_an_attempt_ends_after_a_hundred_steps() -> None:
    """A criterion is to bound the circle. One that never does must not hold the worker for good."""

    def is_early(work: Work) -> bool:
        return work.key == "a"

    workflow = Workflow(
        kind="thing",
        start="new",
        states=("new", "seen", "done"),
        terminal=frozenset({"done"}),
        bounded_cycles=frozenset({"again"}),
        transitions=(
            Transition("look", "new", "seen"),
            Transition("again", "seen", "new", criterion=is_early),
            Transition("end", "seen", "done"),
        ),
    )
    settlement = a_runner(workflow).run_pure(a_lease("new"), 60.0)

    assert len(settlement.steps) == 100
    assert (settlement.state, settlement.standing) == ("new", "open")
