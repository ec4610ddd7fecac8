"""One attempt at an item: choose a transition, perform it, take its outcome, publish, end. Pure: clocks are passed in.

Three parties make attempts, all by these functions: a worker on items it has leased, a worker on findings it reserved
in the log before they are items, and an operator who names a transition. Whatever happens, an attempt ends in one
`Settlement`; `store.items.settle` writes it if the right it carries still holds.

    begin -> (choose -> perform -> take) ... -> advanced | postponed | rejected | refused | failed
"""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.model.backoff import RETRY_AFTER_SECONDS_MAX
from tidings.model.errors import Ambiguous, BadInput, Misconfigured, Permanent, SlowDown, TidingsError, Transient
from tidings.model.harmless import storable
from tidings.model.item import ByHand, Finding, Lease, Link, Standing, Step, split_ref
from tidings.model.outcome import Advance, Outcome, Postpone, Reject
from tidings.model.pipeline import Deliver, Pipeline, no_deliveries
from tidings.model.publication import Shown
from tidings.model.settlement import Settlement
from tidings.model.workflow import STEPS_MAX, Transition, Work, Workflow, name_of

MISCONFIGURED_PARK_SECONDS = 900.0
CAUSE_CHARS_MAX = 160
LINE_CHARS_MAX = 2_000
_PARTICULARS = (
    (re.compile(r"(https?://[^\s/?#'\"]+)[^\s'\",;)]*"), r"\1/…"),
    (re.compile(r"'[^']{0,500}'|\"[^\"]{0,500}\"|`[^`]{0,500}`"), "'…'"),
    (re.compile(r"\b[\w.-]*(?:\d{4}|[0-9a-f]{12})[\w.-]*\b"), "…"),
)
"""Addresses but for their host, quoted values, ids and long numbers. Short ones tell the sort: a status, a limit."""
NOTE_CHARS_MAX = 300
STACK_CHARS_MAX = 4_000
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


# The endings. Each returns the settlement that the store writes.


def advanced(attempt: Attempt) -> Settlement:
    """Rest where the steps led: due again at once, at a time the processor named, or not by itself."""
    workflow, due_at = attempt.workflow, attempt.due_at
    standing = workflow.standing_in(attempt.state, due=due_at is not None)
    settlement = _settlement(attempt, standing, "advanced")
    settlement.attempts = 0
    if workflow.automatic_from(attempt.state):
        settlement.lane, settlement.delay_ms = workflow.lane_of(attempt.state), 0
    elif due_at is not None:
        settlement.lane, settlement.due_at = workflow.lane_of(attempt.state), due_at
    if standing == "dead":
        settlement.error = attempt.work.error
        settlement.cause = _cause(attempt.work.error or f"ended in {attempt.state}")
    return settlement


def ended(attempt: Attempt, transition: Transition, outcome: Postpone | Reject) -> Settlement:
    """Rest because a processor said so: for good, or until a time. Waiting gives the attempt back."""
    if isinstance(outcome, Reject):
        settlement = _settlement(attempt, "rejected", "rejected")
        settlement.error = settlement.cause = outcome.reason
        return settlement
    settlement = _settlement(attempt, "open", "postponed")
    settlement.lane, settlement.due_at, settlement.error = transition.lane, outcome.until, outcome.reason
    settlement.attempts = _attempts_given_back(attempt)
    return settlement


def refused(attempt: Attempt) -> Settlement:
    """No transition's criterion holds: the first one's policy says what happens."""
    workflow = attempt.workflow
    ways = workflow.next_from(attempt.state)
    if not ways:
        return advanced(attempt)
    first = ways[0]
    verdict = first.criterion(attempt.work) if first.criterion else None
    reason = getattr(verdict, "reason", "does not hold")
    name = name_of(first.criterion)
    error, cause = f"{name}: {reason}", f"{name}: {getattr(verdict, 'cause', None) or reason}"
    attempt.steps.append(Step(first.name, attempt.state, criterion=name, refusal=reason))
    if first.trigger == "scheduled":
        settlement = _settlement(attempt, workflow.standing_in(attempt.state, due=False), "dead")
        settlement.cause, settlement.error = _cause(cause), error
        return settlement
    ending = first.retry.refused or first.retry.exhausted
    return _exhausted(attempt, first, ending, error, None, attempt.lease.attempts, _cause(cause))


def failed(attempt: Attempt, error: Exception, rng: random.Random) -> Settlement:
    """Turn a surprise into a retry; what cannot even be encoded, such as a body, keeps nothing of the attempt."""
    if attempt.workflow.next_from(attempt.state):
        try:
            return _retried(attempt, error, rng)
        except Exception as unwritable:  # noqa: BLE001  # encoding a pipeline's values may raise anything
            error = unwritable
    attempt.work.state = attempt.lease.state
    untouched = Attempt(attempt.lease, attempt.work, attempt.workflow, attempt.pipeline, attempt.deliver)
    return _retried(untouched, error, rng)


def _retried(attempt: Attempt, error: Exception, rng: random.Random) -> Settlement:
    """Try again later, or do what the policy says once tries are used up."""
    ways = attempt.workflow.next_from(attempt.state)
    transition = next((t for t in ways if t.criterion is None or _holds(t, attempt.work)), ways[0])
    message = f"ambiguous: {describe(error)}" if isinstance(error, Ambiguous) else describe(error)
    attempts = 1 if attempt.steps else attempt.lease.attempts
    now = attempt.lease.granted_at
    since = now if attempt.steps or attempt.lease.failing_since is None else attempt.lease.failing_since
    if isinstance(error, SlowDown):
        return _slowed(attempt, transition, error, message)
    attempt.steps.append(Step(transition.name, attempt.state, note=storable(f"raised {message}", " ")[:NOTE_CHARS_MAX]))
    if isinstance(error, Misconfigured):
        settlement = _parked(attempt, transition.lane, MISCONFIGURED_PARK_SECONDS, message)
        settlement.attempts = max(0, attempts - 1)
        return settlement
    if isinstance(error, Permanent) or transition.retry.is_used_up(attempts, now - since):
        attempt.work.stack = "".join(traceback.format_exception(error))[-STACK_CHARS_MAX:]
        cause = error.cause if isinstance(error, Permanent) else None
        return _exhausted(attempt, transition, transition.retry.exhausted, message, since, attempts, cause)
    settlement = _settlement(attempt, "open", "retried")
    at_least = error.retry_after_seconds if isinstance(error, Transient) else None
    settlement.lane = transition.lane
    settlement.delay_ms = transition.retry.delay_ms(attempts, rng, at_least)
    settlement.attempts, settlement.failing_since, settlement.error = attempts, since, message
    return settlement


def _slowed(attempt: Attempt, transition: Transition, error: SlowDown, message: str) -> Settlement:
    """Wait as long as the other side asks; that costs no attempt."""
    settlement = _settlement(attempt, "open", "postponed")
    seconds = error.retry_after_seconds if error.retry_after_seconds is not None else transition.retry.base_seconds
    settlement.lane = transition.lane
    settlement.delay_ms = max(1, round(min(seconds, RETRY_AFTER_SECONDS_MAX) * 1000))
    settlement.attempts, settlement.error = _attempts_given_back(attempt), message
    settlement.failing_since = attempt.lease.failing_since
    return settlement


def _exhausted(
    attempt: Attempt,
    transition: Transition,
    ending: str,
    reason: str,
    since: int | None,
    attempts: int,
    cause: str | None = None,
) -> Settlement:
    """Do what a retry policy declares for tries that are used up: park, dead letter, or a failure transition."""
    cause = cause or _cause(reason)
    if ending == "park":
        settlement = _parked(attempt, transition.lane, transition.retry.park_seconds, reason)
    elif ending == "dead_letter":
        settlement = _settlement(attempt, "dead", "dead")
        settlement.error = reason
    else:
        return _failed_by(attempt, ending, reason, cause)
    settlement.cause, settlement.attempts, settlement.failing_since = cause, attempts, since
    return settlement


def _failed_by(attempt: Attempt, name: str, reason: str, cause: str) -> Settlement:
    """Perform the declared failure transition; it is pure, and must not fail itself."""
    transition = attempt.workflow.named(name)
    attempt.work.error = reason
    try:
        outcome = perform(attempt, transition)
        if isinstance(outcome, Advance):
            take(attempt, transition, outcome, 0.0)
    except Exception as error:  # noqa: BLE001  # a failing failure is a dead letter, with both reasons
        settlement = _settlement(attempt, "dead", "dead")
        settlement.cause, settlement.error = cause, f"{reason}; and {name} failed: {describe(error)}"
        return settlement
    settlement = advanced(attempt)
    settlement.ended, settlement.error, settlement.cause = "failed", reason, cause
    return settlement


def _parked(attempt: Attempt, lane: str | None, seconds: float, reason: str) -> Settlement:
    settlement = _settlement(attempt, "parked", "parked")
    settlement.lane, settlement.delay_ms = lane, round(seconds * 1000)
    settlement.error, settlement.cause = reason, _cause(reason)
    return settlement


def _settlement(attempt: Attempt, standing: Standing, how: str) -> Settlement:
    lease = attempt.lease
    body = _encode(attempt.body) if attempt.body is not None else None
    return Settlement(
        id=lease.id,
        pipeline=lease.pipeline,
        kind=lease.kind,
        key=lease.key,
        right=lease.right,
        state_before=lease.state,
        state=attempt.state,
        standing=standing,
        attempts=0 if attempt.steps else lease.attempts,
        revision=lease.revision,
        ended=how,
        body=body,
        accepts=attempt.accepts,
        presents=attempt.accepts or attempt.presents,
        shown=attempt.shown,
        links=attempt.links,
        linked_at=attempt.linked_at,
        children=attempt.children,
        steps=attempt.steps,
    )


def unknown(lease: Lease, what: str) -> Settlement:
    """Park an item whose kind or state this version does not know: another process, newer than this, may claim it."""
    settlement = _untried(lease, "parked", f"{what}: is a part of this deployment older than the rest?", what)
    settlement.lane, settlement.delay_ms = lease.lane, round(MISCONFIGURED_PARK_SECONDS * 1000)
    settlement.attempts = lease.attempts - 1
    return settlement


def unreadable(lease: Lease, error: Exception) -> Settlement:
    """Bury an item whose body cannot be decoded."""
    return _untried(lease, "dead", f"the body cannot be read: {error}", f"unreadable body of {lease.kind}")


def _untried(lease: Lease, standing: Standing, error: str, cause: str) -> Settlement:
    return Settlement(
        id=lease.id,
        pipeline=lease.pipeline,
        kind=lease.kind,
        key=lease.key,
        right=lease.right,
        state_before=lease.state,
        state=lease.state,
        standing=standing,
        attempts=lease.attempts,
        revision=lease.revision,
        ended=standing,
        error=error,
        cause=cause,
    )


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
    settlement.cause = _cause(right.reason) if is_failure else None
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


def describe(error: BaseException) -> str:
    """Say what went wrong in one line; our own errors speak for themselves."""
    if isinstance(error, (Transient, Permanent, Misconfigured)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _attempts_given_back(attempt: Attempt) -> int:
    return 0 if attempt.steps else max(0, attempt.lease.attempts - 1)


def _cause(reason: str) -> str:
    """Cut a reason to the sort of trouble, which dead letters are grouped by: what is particular to an item goes."""
    line = reason.split("\n", 1)[0][:LINE_CHARS_MAX]
    for pattern, sort in _PARTICULARS:
        line = pattern.sub(sort, line)
    return line[:CAUSE_CHARS_MAX]


def _holds(transition: Transition, work: Work) -> bool:
    try:
        return transition.criterion is None or bool(transition.criterion(work))
    except Exception:  # noqa: BLE001  # the criterion itself was the surprise
        return False
