"""One attempt: how long it may take, how far it may go, and what it sees of other items."""

from __future__ import annotations

from dataclasses import replace

from tests.support import example

from tidings.model.attempt import Attempt, relate
from tidings.model.item import Lease
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Settlement
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
        lane="pure",
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


def run(workflow: Workflow) -> Settlement:
    pipeline: Pipeline = replace(example.pipeline(), workflows={"thing": workflow})
    runner = Runner({"example": pipeline}, monotonic=lambda: NOW)
    attempt = runner.begin(a_lease("new"), 60.0)
    assert isinstance(attempt, Attempt)
    settlement = runner.run_pure(attempt)
    assert settlement is not None
    return settlement


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
    run(workflow)

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
    settlement = run(workflow)

    assert len(settlement.steps) == 100
    assert (settlement.state, settlement.standing) == ("new", "open")


def test_each_step_sees_the_items_it_asked_for() -> None:
    """An attempt pauses in front of every step that wants to see others, also of one that it reaches after a pause."""
    seen: list[set[str]] = []

    def look(work: Work) -> Outcome:
        seen.append(set(work.related))
        return Advance()

    workflow = Workflow(
        kind="thing",
        start="new",
        states=("new", "read", "compared", "done"),
        terminal=frozenset({"done"}),
        transitions=(
            Transition("read", "new", "read"),
            Transition("compare", "read", "compared", look, prefetch=lambda work: ["thing:twin"]),
            Transition("place", "compared", "done", look, prefetch=lambda work: ["thing:parent"]),
        ),
    )
    runner = Runner({"example": replace(example.pipeline(), workflows={"thing": workflow})}, monotonic=lambda: NOW)
    attempt = runner.begin(a_lease("new"), 60.0)
    assert isinstance(attempt, Attempt)
    pauses = []
    while (settlement := runner.run_pure(attempt)) is None:
        pauses.append((attempt.state, attempt.needs))
        relate(attempt, {"thing:twin": b"{}", "thing:parent": b"{}"})

    assert pauses == [("read", ("thing:twin",)), ("compared", ("thing:parent",))]
    assert seen == [{"thing:twin"}, {"thing:twin", "thing:parent"}]
    assert [step.transition for step in settlement.steps] == ["read", "compare", "place"]
