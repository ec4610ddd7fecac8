"""What a person asks of an item is done, or refused with a reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests import example

from tidings.model.byhand import ByHand, perform_by_hand
from tidings.model.errors import BadInput, Permanent
from tidings.model.item import Item
from tidings.model.outcome import Advance, No, Outcome, Postpone, Reject, Verdict
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import Transition, Work, Workflow

NOW = 1_800_000_000_000
FIELDS: dict[str, Any] = dict.fromkeys(Item.__dataclass_fields__) | {
    "id": 7, "pipeline": "example", "kind": "thing", "key": "a", "state": "found", "standing": "open", "attempts": 0,
    "revision": 1, "lease_token": 3,
}  # fmt: skip


def item(**changes: Any) -> Item:
    return Item(**FIELDS | changes)


def perform(name: str, pipeline: Pipeline | None = None, *, state: str = "found", **body: Any) -> ByHand:
    payload = msgspec.json.encode(example.Thing("a", **body))
    declared = pipeline or example.pipeline()
    return perform_by_hand(declared, item(state=state), payload, None, name, now_ms=NOW, reason="asked to")


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
        "example", "Example", "A tiny pipeline.", {"thing": workflow}, presenters={"thing": example.present}
    )


def test_the_move_is_told_whole() -> None:
    move = perform("fail", failures=1)
    assert (move.state, move.standing, move.lane, move.due_at) == ("failed", "dead", None, None)
    assert move.error == "asked to"
    assert move.body is not None
    assert msgspec.json.decode(move.body, type=example.Thing).failures == 2
    assert (move.step.transition, move.step.from_state, move.step.to_state) == ("fail", "found", "failed")
    assert not move.publishes


def test_what_goes_on_by_itself_is_due_at_once() -> None:
    move = perform("retry", state="failed")
    assert (move.state, move.standing, move.lane, move.due_at) == ("found", "open", "pure", NOW)
    assert move.error is None


def test_a_publishing_move_presents_the_new_body() -> None:
    def write(work: Work) -> Outcome:
        return Advance(body=msgspec.structs.replace(work.body, text="new"))

    move = perform("move", with_transition(processor=write, publishes=True), text="old")
    assert move.publishes
    assert move.presentation is not None
    assert move.presentation.card == example.ThingCard("a", "new")


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


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="nobody here knows the kind 'ghost' of example"):
        perform_by_hand(example.pipeline(), item(kind="ghost"), b"{}", None, "fail", now_ms=NOW, reason="asked to")


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
    step = perform("move", with_transition(criterion=example.is_wanted)).step
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
    new = msgspec.json.encode(example.Thing("a", "new"))
    declared = with_transition(processor=look)
    move = perform_by_hand(declared, item(revision=2), new, old, "move", now_ms=NOW, reason="asked to")
    (work,) = seen
    assert (work.body.text, work.accepted.text, work.error) == ("new", "old", "asked to")
    assert (work.now_ms, work.revision, work.item_id) == (NOW, 2, 7)
    assert move.step.note == "looked"
    assert move.body is None
