"""The endings of an attempt. Whatever happens, it ends in one `Settlement`.

`store.items.settle` writes that settlement if the right it carries still holds.
"""

from __future__ import annotations

import random
import re
import traceback

import msgspec

from tidings.model.attempt import Attempt, perform, take
from tidings.model.backoff import RETRY_AFTER_SECONDS_MAX
from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, Transient
from tidings.model.harmless import storable
from tidings.model.item import Lease, Standing, Step
from tidings.model.outcome import Advance, Postpone, Reject
from tidings.model.settlement import Settlement
from tidings.model.workflow import Transition, Work, name_of

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
_encode = msgspec.json.Encoder().encode


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
        settlement.cause = cause_of(attempt.work.error or f"ended in {attempt.state}")
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
        settlement.cause, settlement.error = cause_of(cause), error
        return settlement
    ending = first.retry.refused or first.retry.exhausted
    return _exhausted(attempt, first, ending, error, None, attempt.lease.attempts, cause_of(cause))


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
    cause = cause or cause_of(reason)
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
    settlement.error, settlement.cause = reason, cause_of(reason)
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


def describe(error: BaseException) -> str:
    """Say what went wrong in one line; our own errors speak for themselves."""
    if isinstance(error, (Transient, Permanent, Misconfigured)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _attempts_given_back(attempt: Attempt) -> int:
    return 0 if attempt.steps else max(0, attempt.lease.attempts - 1)


def cause_of(reason: str) -> str:
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
