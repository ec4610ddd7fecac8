"""An attempt from its beginning to its end: by itself, or by a transition that a person names.

(choose -> perform -> take) ... -> advanced | postponed | rejected | refused | failed
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.model.attempt import Attempt, choose, perform, take
from tidings.model.endings import advanced, cause_of, ended, refused
from tidings.model.errors import BadInput, TidingsError
from tidings.model.item import ByHand
from tidings.model.outcome import Advance
from tidings.model.settlement import Settlement
from tidings.model.workflow import STEPS_MAX, Transition, Workflow, name_of


def carry_on(attempt: Attempt, monotonic: Callable[[], float]) -> Settlement | None:
    """Perform one pure transition after the other, as long as the next one need not be settled first.

    Return None where a step has to see other items: `attempt.needs` names them, and with `work.related` filled in the
    attempt goes on from there.
    """
    fused, work = attempt.workflow.fused, attempt.work
    started = monotonic()
    while True:
        transition = choose(attempt)
        if transition is None:
            return refused(attempt)
        if transition.prefetch is not None and attempt.asked is not transition:
            attempt.asked, attempt.needs = transition, tuple(transition.prefetch(work))
            if attempt.needs:
                return None
        outcome = perform(attempt, transition)
        if not isinstance(outcome, Advance):
            return ended(attempt, transition, outcome)
        now = monotonic()
        take(attempt, transition, outcome, now - started)
        started = now
        if attempt.state not in fused or len(attempt.steps) >= STEPS_MAX:
            return advanced(attempt)


def by_hand(attempt: Attempt, name: str, right: ByHand) -> Settlement:
    """Perform the transition a person named, or raise BadInput saying why it is not allowed now."""
    transition = _allowed(attempt.workflow, attempt.state, name)
    attempt.work.error = right.reason
    verdict = transition.criterion(attempt.work) if transition.criterion else True
    if not verdict:
        why = getattr(verdict, "reason", "it does not hold")
        raise BadInput(f"{name} is not allowed now: {name_of(transition.criterion)}: {why}")
    try:
        outcome = perform(attempt, transition)
    except TidingsError as error:
        raise BadInput(f"{name} failed: {error}") from error
    if not isinstance(outcome, Advance):
        raise BadInput(f"{name} was refused: {outcome.reason}")
    take(attempt, transition, outcome, 0.0)
    settlement = advanced(attempt)
    settlement.right, settlement.ended = right, "manual"
    is_failure = transition.target in attempt.workflow.failures
    settlement.error = right.reason if is_failure else None
    settlement.cause = cause_of(right.reason) if is_failure else None
    return settlement


def ask_by_hand(attempt: Attempt, name: str) -> None:
    """Note which other items a transition by hand wants to see."""
    transition = _allowed(attempt.workflow, attempt.state, name)
    if transition.prefetch is not None:
        attempt.needs = tuple(transition.prefetch(attempt.work))


def _allowed(workflow: Workflow, state: str, name: str) -> Transition:
    transition = next((t for t in workflow.by_hand_from(state) if t.name == name), None)
    if transition is not None:
        return transition
    allowed = ", ".join(t.name for t in workflow.by_hand_from(state)) or "none"
    is_declared = any(t.name == name for t in workflow.transitions)
    what = f"{name!r} does not start in state {state!r}" if is_declared else f"there is no transition {name!r}"
    raise BadInput(f"{what}; by hand from here: {allowed}")
