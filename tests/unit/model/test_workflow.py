"""A workflow that could leave an item stuck, or moving for ever, cannot be declared; a good one draws itself."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.support import example

from tidings.model.backoff import RetryPolicy
from tidings.model.contracts import Kit
from tidings.model.errors import Misconfigured
from tidings.model.outcome import Advance, Outcome, Verdict
from tidings.model.workflow import ANY, Transition, Work, Workflow


def act(_: Work) -> Outcome:
    return Advance()


async def wait(_: Work, __: Kit) -> Outcome:
    return Advance()


def is_early(_: Work) -> Verdict:
    return True


class Waiting:
    """A processor that is an object."""

    async def __call__(self, _: Work, __: Kit) -> Outcome:
        return Advance()


def declare(*transitions: Transition, states: str = "new seen done", **more: Any) -> Workflow:
    """Declare new -> seen -> done, or what the test says."""
    values: dict[str, Any] = {"terminal": frozenset({"done"}), "start": "new"} | more
    return Workflow("thing", states=tuple(states.split()), transitions=transitions, **values)


LOOK = Transition("look", "new", "seen")
END = Transition("end", "seen", "done")


@pytest.mark.parametrize(
    ("transitions", "more", "message"),
    [
        ((LOOK, END, Transition("go", "seen", "nowhere")), {}, "unknown states nowhere"),
        ((LOOK, END, Transition("go", ("seen", "limbo"), "done")), {}, "unknown states limbo"),
        ((LOOK, END), {"terminal": frozenset({"done", "gone"})}, "unknown states gone"),
        ((LOOK, END), {"failures": frozenset({"broken"})}, "unknown states broken"),
        ((LOOK, END), {"start": "begin"}, "unknown states begin"),
        ((LOOK, END), {"states": "new seen seen done"}, "a state is declared twice"),
        ((LOOK, END, Transition("look", "seen", "done")), {}, "two transitions share a name"),
        ((LOOK, END, Transition("join", "other", "done")), {"states": "new other seen done"}, "nothing leads to other"),
        (
            (LOOK, END, Transition("there", "x", "y", trigger="manual"), Transition("back", "y", "x")),
            {"states": "new seen done x y"},
            "no way leads from new to x, y",
        ),
        ((LOOK,), {"states": "new seen", "terminal": frozenset()}, "state seen has no way out and is not terminal"),
        ((LOOK, END, Transition("again", "done", "seen")), {}, "terminal state done has an automatic way out"),
        ((LOOK, END, Transition("again", "seen", "new")), {}, "form a cycle without a bound: new -> seen -> new"),
        ((LOOK, END, Transition("again", "seen", "seen")), {}, "form a cycle without a bound: seen -> seen"),
        (
            (LOOK, END, Transition("again", "seen", "new")),
            {"bounded_cycles": frozenset({"again"})},
            "a cycle without a bound",
        ),
        ((LOOK, END, Transition("ask", "seen", "done", lane="ai")), {}, "ways out of seen use different lanes"),
        ((LOOK, END, Transition("redo", ANY, "seen", wait, trigger="manual")), {}, "redo may be performed by hand"),
        ((LOOK, END, Transition("redo", ANY, "seen", wait, trigger="scheduled")), {}, "so it must be pure"),
        ((LOOK, Transition("end", "seen", "done", retry=RetryPolicy(exhausted="give_up"))), {}, "ends in 'give_up'"),
        ((LOOK, Transition("end", "seen", "done", retry=RetryPolicy(refused="look"))), {}, "is no manual transition"),
    ],
)
def test_a_bad_declaration_is_refused(transitions: tuple[Transition, ...], more: dict[str, Any], message: str) -> None:
    with pytest.raises(Misconfigured, match="thing: ") as refused:
        declare(*transitions, **more)
    assert message in str(refused.value)


def test_a_cycle_that_its_criterion_bounds_is_allowed() -> None:
    again = Transition("again", "seen", "new", criterion=is_early)
    workflow = declare(LOOK, again, END, bounded_cycles=frozenset({"again"}))
    assert [t.name for t in workflow.automatic_from("seen")] == ["again", "end"]


def test_a_retry_policy_may_end_in_a_manual_transition() -> None:
    look = Transition("look", "new", "seen", retry=RetryPolicy(exhausted="give_up", refused="park"))
    workflow = declare(look, END, Transition("give_up", ANY, "done", trigger="manual"))
    assert workflow.named("give_up").target == "done"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(Misconfigured, match="declares no transition 'fly'"):
        declare(LOOK, END).named("fly")


@pytest.mark.parametrize(
    ("processor", "is_pure"),
    [(None, True), (act, True), (wait, False), (functools.partial(wait), False), (Waiting(), False)],
)
def test_a_processor_tells_whether_it_waits(processor: Any, is_pure: bool) -> None:
    assert Transition("look", "new", "seen", processor).is_pure is is_pure


def test_ways_out_of_a_state() -> None:
    workflow = example.workflow()
    assert [t.name for t in workflow.automatic_from("found")] == ["read"]
    assert [t.name for t in workflow.by_hand_from("found")] == ["fail"]
    assert [t.name for t in workflow.by_hand_from("failed")] == ["retry"], (
        "a transition from anywhere leaves its target"
    )
    assert workflow.automatic_from("failed") == ()
    assert workflow.automatic_from("unheard of") == ()
    assert (workflow.lane_of("found"), workflow.lane_of("shown")) == ("pure", None)


def test_only_runs_of_pure_transitions_are_fused() -> None:
    workflow = declare(Transition("look", "new", "seen", wait, lane="fetch"), END)
    assert workflow.fused == {"seen"}
    assert not example.workflow(fuse=False).fused


def test_a_scheduled_way_out_counts_when_nothing_is_automatic() -> None:
    wake = Transition("wake", "seen", "done", trigger="scheduled", lane="fetch")
    workflow = declare(LOOK, wake)
    assert workflow.next_from("seen") == (wake,)
    assert workflow.lane_of("seen") == "fetch"
    assert workflow.automatic_from("seen") == ()


@pytest.mark.parametrize(
    ("state", "due", "standing"),
    [
        ("found", True, "open"),
        ("found", False, "open"),
        ("shown", False, "done"),
        ("failed", False, "dead"),
        ("failed", True, "open"),
    ],
)
def test_how_an_item_stands(state: str, due: bool, standing: str) -> None:
    assert example.workflow().standing_in(state, due=due) == standing


def test_an_item_that_only_a_person_moves_waits() -> None:
    workflow = declare(LOOK, Transition("end", "seen", "done", trigger="manual"))
    assert workflow.standing_in("seen", due=False) == "waits"


def test_drawn_as_text() -> None:
    assert example.workflow().draw_text().splitlines() == [
        "[*] -> found",
        "found -> read: read (read)",
        "read -> checked: check (check + is_wanted)",
        "checked -> shown: show",
        "found ~> failed: fail (fail) [manual]",
        "read ~> failed: fail (fail) [manual]",
        "checked ~> failed: fail (fail) [manual]",
        "shown ~> failed: fail (fail) [manual]",
        "failed ~> found: retry [manual]",
        "shown -> [*]",
    ]


def test_drawn_for_mermaid() -> None:
    lines = example.workflow().draw_mermaid().splitlines()
    assert lines[:3] == ["stateDiagram-v2", "    [*] --> found", "    found --> read : read (read)"]
    assert "    failed --> found : retry [manual]" in lines
    assert lines[-1] == "    shown --> [*]"


def test_a_drawing_names_what_a_partial_holds() -> None:
    look = Transition("look", "new", "seen", functools.partial(functools.partial(act)))
    assert "new -> seen: look (act)" in declare(look, END).draw_text()
