"""What a person asks of an item is done, or refused with a reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.support import example

from tidings.model.attempt import Attempt
from tidings.model.course import by_hand
from tidings.model.errors import BadInput, Permanent
from tidings.model.item import ByHand, Lease, Step
from tidings.model.outcome import Advance, No, Outcome, Postpone, Reject, Verdict
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Settlement
from tidings.model.workflow import Transition, Work, Workflow

NOW = 1_800_000_000_000


def perform(
    name: str, pipeline: Pipeline | None = None, *, state: str = "found", accepted: bytes | None = None, **body: Any
) -> Settlement:
    """Perform a transition on an item that was seen with token 3."""
    declared = pipeline or example.pipeline()
    workflow = declared.workflows["thing"]
    lease = Lease(
        id=7, pipeline="example", kind="thing", key="a", state=state, lane=None, token=3, attempts=0, revision=1,
        priority=1, granted_at=NOW, lease_until=NOW, failing_since=None, lost_leases=0, state_since=0,
        body=msgspec.json.encode(example.Thing("a", **body)), accepted=accepted,
    )  # fmt: skip
    attempt = Attempt(lease, workflow.work(lease), workflow, declared)
    return by_hand(attempt, name, ByHand(3, "tester", "asked to"))


def step_of(settlement: Settlement) -> Step:
    (step,) = settlement.steps
    return step


def with_transition(**values: Any) -> Pipeline:
    """Declare a pipeline with one manual transition, `move`, of the test's own."""
    workflow = Workflow(
        kind="thing",
        start="found",
        states=("found", "shown"),
        terminal=frozenset({"shown"}),
        body=example.Thing,
        transitions=(Transition("move", "found", "shown", trigger="manual", **values),),
    )
    return Pipeline(
        "example",
        "Example",
        "A tiny pipeline.",
        {"thing": workflow},
        presenters={"thing": example.present},
        collections=example.pipeline().collections,
    )


def test_the_move_is_told_whole() -> None:
    move = perform("fail", failures=1)
    assert (move.state, move.standing, move.lane, move.due_at) == ("failed", "dead", None, None)
    assert (move.error, move.cause, move.right) == ("asked to", "asked to", ByHand(3, "tester", "asked to"))
    assert move.body is not None
    assert msgspec.json.decode(move.body, type=example.Thing).failures == 2
    assert (step_of(move).transition, move.state_before, step_of(move).to_state) == ("fail", "found", "failed")
    assert not move.accepts


def test_what_goes_on_by_itself_is_due_at_once() -> None:
    move = perform("retry", state="failed")
    assert (move.state, move.standing, move.lane, move.delay_ms) == ("found", "open", "pure", 0)
    assert move.error is None


def test_a_publishing_move_presents_the_new_body() -> None:
    def write(work: Work) -> Outcome:
        return Advance(body=msgspec.structs.replace(work.body, text="new"))

    move = perform("move", with_transition(processor=write, publishes=True), text="old")
    assert move.accepts
    assert move.shown is not None
    assert msgspec.json.decode(move.shown.value, type=example.ThingCard) == example.ThingCard("a", "new")


@pytest.mark.parametrize(
    ("name", "state", "message"),
    [
        ("fly", "found", "there is no transition 'fly'; by hand from here: fail"),
        ("retry", "found", "'retry' does not start in state 'found'; by hand from here: fail"),
        ("read", "found", "'read' does not start in state 'found'; by hand from here: fail"),
        ("fail", "failed", "'fail' does not start in state 'failed'; by hand from here: retry"),
    ],
)
def test_what_is_not_declared_here_is_refused(name: str, state: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        perform(name, state=state)
    assert str(refused.value) == message


def test_nothing_can_be_done_by_hand_in_a_state_nobody_knows() -> None:
    with pytest.raises(BadInput, match="'move' does not start in state 'lost'; by hand from here: none"):
        perform("move", with_transition(), state="lost")


def says_no(work: Work) -> Verdict:
    return No(f"the text is {work.body.text!r}")


def is_false(_: Work) -> Verdict:
    return False


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (says_no, "move is not allowed now: says_no: the text is 'x'"),
        (is_false, "move is not allowed now: is_false: it does not hold"),
    ],
)
def test_a_criterion_that_does_not_hold_refuses(criterion: Any, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        perform("move", with_transition(criterion=criterion), text="x")
    assert str(refused.value) == message


def test_a_criterion_that_holds_is_recorded() -> None:
    step = step_of(perform("move", with_transition(criterion=example.is_wanted)))
    assert (step.criterion, step.verdict) == ("is_wanted", "yes")


def fails(_: Work) -> Outcome:
    raise Permanent("it is broken")


def rejects(_: Work) -> Outcome:
    return Reject("not for us")


def postpones(work: Work) -> Outcome:
    return Postpone(work.now_ms + 1, "not yet")


@pytest.mark.parametrize(
    ("processor", "message"),
    [
        (fails, "move failed: it is broken"),
        (rejects, "move was refused: not for us"),
        (postpones, "move was refused: not yet"),
    ],
)
def test_a_processor_that_does_not_advance_refuses(processor: Any, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        perform("move", with_transition(processor=processor))
    assert str(refused.value) == message


def test_the_processor_sees_who_asked_why_and_what_readers_see() -> None:
    seen: list[Work] = []

    def look(work: Work) -> Outcome:
        seen.append(work)
        return Advance(note="looked")

    old = msgspec.json.encode(example.Thing("a", "old"))
    move = perform("move", with_transition(processor=look), accepted=old, text="new")
    (work,) = seen
    assert (work.body.text, work.accepted.text, work.error) == ("new", "old", "asked to")
    assert (work.now_ms, work.revision, work.item_id) == (NOW, 1, 7)
    assert step_of(move).note == "looked"
    assert move.body is None
