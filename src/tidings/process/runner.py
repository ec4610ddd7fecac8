"""One attempt: choose the transition, run its processor, say how it ended. Pure runs are fused."""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.model.backoff import RETRY_AFTER_SECONDS_MAX
from tidings.model.contracts import Kit
from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, Transient
from tidings.model.item import HELD, Finding, Kept, Lease, Link, Step
from tidings.model.outcome import Advance, Outcome, Postpone, Reject
from tidings.model.pipeline import Deliver, Pipeline, no_deliveries
from tidings.model.publication import Presentation
from tidings.model.settlement import Settlement
from tidings.model.workflow import STEPS_MAX, Prefetch, Transition, Work, Workflow, name_of

DEADLINE_SHARE = 0.9
MISCONFIGURED_PARK_SECONDS = 900.0
STACK_CHARS_MAX = 4_000

Decode = Callable[[bytes], Any]
Related = dict[str, Any] | Exception | None
"""Prefetched bodies by ref, or why they could not be had."""
_encode = msgspec.json.Encoder().encode
_ADVANCE = Advance()


def _unwatched(_: Work) -> None:
    return None


@dataclass(slots=True)
class _Course:
    """What one attempt has gathered so far."""

    lease: Lease
    work: Work
    workflow: Workflow
    state: str
    body: Any = None
    links: tuple[Link, ...] | None = None
    children: tuple[Finding, ...] = ()
    steps: list[Kept] = field(default_factory=list)
    due_at: int | None = None
    accepts: bool = False
    presentation: Presentation | None = None


class Runner:
    """Runs attempts of every declared pipeline."""

    def __init__(
        self,
        pipelines: Mapping[str, Pipeline],
        *,
        deliver: Deliver = no_deliveries,
        rng: random.Random | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pipelines = pipelines
        self._deliver = deliver
        self._rng = rng or random.Random()
        self._monotonic = monotonic
        self._decoders: dict[tuple[str, str], Decode] = {
            (p.name, kind): msgspec.json.Decoder(w.body if w.body is not None else Any).decode
            for p in pipelines.values()
            for kind, w in p.workflows.items()
        }
        self._prefetching: dict[tuple[str, str, str], Prefetch] = {
            (p.name, kind, state): transition.prefetch
            for p in pipelines.values()
            for kind, w in p.workflows.items()
            for state in w.states
            for transition in reversed(w.next_from(state))
            if transition.prefetch is not None
        }

    def workflow_of(self, lease: Lease) -> Workflow | None:
        """Return the workflow a lease's item follows, or None for a kind nobody here knows."""
        pipeline = self._pipelines.get(lease.pipeline)
        return pipeline.workflows.get(lease.kind) if pipeline else None

    def waits(self, lease: Lease) -> bool:
        """Tell whether the next transition's processor waits (and so needs the event loop)."""
        workflow = self.workflow_of(lease)
        return workflow is not None and any(not t.is_pure for t in workflow.next_from(lease.state))

    @property
    def has_prefetches(self) -> bool:
        """Tell whether any transition at all asks for other items."""
        return bool(self._prefetching)

    def prefetches(self, lease: Lease) -> list[str]:
        """Return the refs an attempt needs of other items, where its transition declares any."""
        prefetch = self._prefetching.get((lease.pipeline, lease.kind, lease.state))
        return list(prefetch(self._work(lease, 0))) if prefetch is not None else []

    def decode_all(self, pipeline: str, bodies: Mapping[str, bytes]) -> dict[str, Any]:
        """Decode bodies of other items by ref; one that cannot be read is absent, as a missing item is."""
        decoded = {}
        for name, body in bodies.items():
            try:
                decoded[name] = self._decoders[pipeline, name.partition(":")[0]](body)
            except (KeyError, msgspec.DecodeError):
                continue
        return decoded

    def run_pure(self, lease: Lease, lease_seconds: float, related: Related = None) -> Settlement:
        """Make one attempt whose processors never wait."""
        course = self._begin(lease, lease_seconds)
        if isinstance(course, Settlement):
            return course
        try:
            if related is not None:
                _relate(course, related)
            return self._run_on(course)
        except Exception as error:  # noqa: BLE001  # the runner is where surprises are recorded
            return self._failed(course, error)

    def run_ahead(self, lease: Lease, lease_seconds: float) -> Settlement | None:
        """Make the first attempt at an item that is not born yet; None where that needs to know other items."""
        course = self._begin(lease, lease_seconds)
        if isinstance(course, Settlement):
            return course
        try:
            prefetch = self._prefetching.get((lease.pipeline, lease.kind, lease.state))
            if prefetch is not None and any(prefetch(course.work)):
                return None
            return self._run_on(course)
        except Exception as error:  # noqa: BLE001  # the runner is where surprises are recorded
            return self._failed(course, error)

    def _run_on(self, course: _Course) -> Settlement:
        """Perform one transition after the other for as long as the next one need not be settled first."""
        work, following, fused = course.work, course.workflow.following, course.workflow.fused
        started = self._monotonic()
        while True:
            for transition in following.get(course.state, ()):
                if transition.criterion is None or transition.criterion(work):
                    break
            else:
                return self._refused(course)
            outcome: Any = transition.processor(work) if transition.processor is not None else _ADVANCE
            if outcome.__class__ is not Advance:
                return self._ended(course, transition, outcome)
            started = self._take(course, transition, outcome, started)
            if course.state not in fused or len(course.steps) >= STEPS_MAX:
                return self._advanced(course)

    async def run_waiting(
        self,
        lease: Lease,
        kit: Kit,
        lease_seconds: float,
        related: Related = None,
        begun: Callable[[Work], None] = _unwatched,
    ) -> Settlement:
        """Make one attempt with a processor that waits, `lease_seconds` at most; `begun` is told of the work."""
        course = self._begin(lease, lease_seconds)
        if isinstance(course, Settlement):
            return course
        begun(course.work)
        try:
            if related is not None:
                _relate(course, related)
            transition = self._choose(course)
            if transition is None:
                return self._refused(course)
            if transition.is_pure:
                outcome = self._perform(course, transition)
            else:
                outcome = await self._perform_waiting(course, transition, kit, lease_seconds)
            if not isinstance(outcome, Advance):
                return self._ended(course, transition, outcome)
            return self._advanced(course)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  # the runner is where surprises are recorded
            return self._failed(course, error)

    def _begin(self, lease: Lease, lease_seconds: float) -> _Course | Settlement:
        workflow = self.workflow_of(lease)
        if workflow is None or lease.state not in workflow.states:
            what = f"unknown kind {lease.kind}" if workflow is None else f"unknown state {lease.state}"
            return self._parked_unknown(lease, what)
        try:
            work = self._work(lease, lease_seconds)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            return self._unreadable(lease, workflow, error)
        return _Course(lease, work, workflow, lease.state)

    def _work(self, lease: Lease, lease_seconds: float) -> Work:
        decode = self._decoders[lease.pipeline, lease.kind]
        return Work(
            lease.pipeline,
            lease.kind,
            lease.key,
            lease.state,
            lease.attempts,
            lease.revision,
            lease.granted_at,
            decode(lease.body),
            decode(lease.accepted) if lease.accepted is not None else None,
            deadline=self._monotonic() + lease_seconds * DEADLINE_SHARE,
            item_id=lease.id,
            lost_leases=lease.lost_leases,
            state_since_ms=lease.state_since,
        )

    def _choose(self, course: _Course) -> Transition | None:
        """Return the first transition whose criterion holds."""
        for transition in course.workflow.next_from(course.state):
            if transition.criterion is None or transition.criterion(course.work):
                return transition
        return None

    def _perform(self, course: _Course, transition: Transition) -> Outcome:
        started = self._monotonic()
        outcome: Any = transition.processor(course.work) if transition.processor is not None else _ADVANCE
        return self._taken(course, transition, outcome, started)

    async def _perform_waiting(self, course: _Course, transition: Transition, kit: Kit, seconds: float) -> Outcome:
        started = self._monotonic()
        assert transition.processor is not None
        try:
            async with asyncio.timeout(seconds) as limit:
                outcome: Outcome = await transition.processor(course.work, kit)  # type: ignore[misc,call-arg]
        except TimeoutError:
            if limit.expired():
                raise Transient(f"the attempt took longer than {seconds:g} s") from None
            raise
        return self._taken(course, transition, outcome, started)

    def _taken(self, course: _Course, transition: Transition, outcome: Outcome, started: float) -> Outcome:
        if isinstance(outcome, Advance):
            self._take(course, transition, outcome, started)
        return outcome

    def _take(self, course: _Course, transition: Transition, outcome: Advance, started: float) -> float:
        """Note what a step brought, and how long it took; return the time."""
        work = course.work
        if transition.publishes:
            self._publish(course, outcome)
        if outcome.body is not None:
            course.body = work.body = outcome.body
        if outcome.links is not None:
            course.links = outcome.links
        if outcome.children:
            course.children += outcome.children
        course.due_at = outcome.due_at
        now = self._monotonic()
        ms = int((now - started) * 100_000) / 100  # to hundredths, in a third of the time rounding takes
        course.steps.append(_step(transition, course.state, outcome, ms))
        course.state = work.state = transition.target
        return now

    def _publish(self, course: _Course, outcome: Advance) -> None:
        """Make what readers get to see; if that fails, nothing of the step has happened."""
        pipeline = self._pipelines[course.lease.pipeline]
        kind, work, before = course.lease.kind, course.work, course.work.body
        presenter, announce = pipeline.presenters.get(kind), pipeline.announce.get(kind)
        presentation: Presentation | None = None
        deliveries: tuple[Finding, ...] = ()
        try:
            if outcome.body is not None:
                work.body = outcome.body
            if presenter is not None:
                presentation = presenter(course.lease.key, work.body)
            if announce is not None:
                deliveries = self._deliver(work, announce(work))
        except BaseException:
            work.body = before
            raise
        course.accepts, course.presentation = True, presentation
        course.children += deliveries

    def _advanced(self, course: _Course) -> Settlement:
        workflow, due_at = course.workflow, course.due_at
        standing = workflow.standing_in(course.state, due=due_at is not None)
        settlement = self._settlement(course, standing, "advanced")
        settlement.attempts = 0
        if workflow.automatic_from(course.state):
            settlement.lane, settlement.delay_ms = workflow.lane_of(course.state), 0
        elif due_at is not None:
            settlement.lane, settlement.due_at = workflow.lane_of(course.state), due_at
        if standing == "dead":
            settlement.error = course.work.error
            settlement.cause = _cause(course.work.error or f"ended in {course.state}")
        return settlement

    def _ended(self, course: _Course, transition: Transition, outcome: Postpone | Reject) -> Settlement:
        if isinstance(outcome, Reject):
            settlement = self._settlement(course, "rejected", "rejected")
            settlement.lane, settlement.error, settlement.cause = None, outcome.reason, outcome.reason
            return settlement
        settlement = self._settlement(course, "open", "postponed")
        settlement.lane = transition.lane
        settlement.due_at = outcome.until
        settlement.error = outcome.reason
        settlement.attempts = 0 if course.steps else max(0, course.lease.attempts - 1)
        return settlement

    def _refused(self, course: _Course) -> Settlement:
        """No transition's criterion holds: the first one's policy says what happens."""
        workflow = course.workflow
        ways = workflow.next_from(course.state)
        if not ways:
            return self._advanced(course)
        first = ways[0]
        verdict = first.criterion(course.work) if first.criterion else None
        reason = getattr(verdict, "reason", "does not hold")
        name = name_of(first.criterion)
        error, cause = f"{name}: {reason}", f"{name}: {getattr(verdict, 'cause', None) or reason}"
        step = Step(first.name, course.state, course.state, criterion=name, verdict=reason)
        course.steps.append(step)
        if first.trigger == "scheduled":
            settlement = self._settlement(course, workflow.standing_in(course.state, due=False), "dead")
            settlement.lane = None
            settlement.cause, settlement.error = _cause(cause), error
            return settlement
        ending = first.retry.refused or first.retry.exhausted
        return self._exhausted(course, first, ending, error, None, course.lease.attempts, _cause(cause))

    def _failed(self, course: _Course, error: Exception) -> Settlement:
        """Turn a surprise into a retry; what cannot even be written, such as a body, keeps nothing of the attempt."""
        if course.workflow.next_from(course.state):
            try:
                return self._retried(course, error)
            except Exception as unwritable:  # noqa: BLE001  # the runner is where surprises are recorded
                error = unwritable
        course.work.state = course.lease.state
        return self._retried(_Course(course.lease, course.work, course.workflow, course.lease.state), error)

    def _retried(self, course: _Course, error: Exception) -> Settlement:
        """Try again later, or do what the policy says once tries are used up."""
        workflow = course.workflow
        ways = workflow.next_from(course.state)
        transition = next((t for t in ways if t.criterion is None or _holds(t, course.work)), ways[0])
        message = f"ambiguous: {describe(error)}" if isinstance(error, Ambiguous) else describe(error)
        attempts = 1 if course.steps else course.lease.attempts
        now = course.lease.granted_at
        since = now if course.steps or course.lease.failing_since is None else course.lease.failing_since
        if isinstance(error, SlowDown):
            return self._slowed(course, transition, error, message)
        if isinstance(error, Misconfigured):
            settlement = self._settlement(course, "parked", "parked")
            settlement.lane, settlement.delay_ms = transition.lane, round(MISCONFIGURED_PARK_SECONDS * 1000)
            settlement.error, settlement.cause, settlement.attempts = message, _cause(message), max(0, attempts - 1)
            return settlement
        if isinstance(error, Permanent) or transition.retry.is_used_up(attempts, now - since):
            stack = "".join(traceback.format_exception(error))[-STACK_CHARS_MAX:]
            course.work.stack = stack
            cause = error.cause if isinstance(error, Permanent) else None
            return self._exhausted(course, transition, transition.retry.exhausted, message, since, attempts, cause)
        settlement = self._settlement(course, "open", "retried")
        at_least = error.retry_after_seconds if isinstance(error, Transient) else None
        settlement.lane = transition.lane
        settlement.delay_ms = transition.retry.delay_ms(attempts, self._rng, at_least)
        settlement.attempts, settlement.failing_since = attempts, since
        settlement.error = message
        return settlement

    def _slowed(self, course: _Course, transition: Transition, error: SlowDown, message: str) -> Settlement:
        settlement = self._settlement(course, "open", "postponed")
        seconds = error.retry_after_seconds if error.retry_after_seconds is not None else transition.retry.base_seconds
        seconds = min(seconds, RETRY_AFTER_SECONDS_MAX)
        settlement.lane, settlement.delay_ms = transition.lane, max(1, round(seconds * 1000))
        settlement.attempts = 0 if course.steps else max(0, course.lease.attempts - 1)
        settlement.error = message
        settlement.failing_since = course.lease.failing_since
        return settlement

    def _exhausted(
        self,
        course: _Course,
        transition: Transition,
        ending: str,
        reason: str,
        since: int | None,
        attempts: int,
        cause: str | None = None,
    ) -> Settlement:
        if ending == "park":
            settlement = self._settlement(course, "parked", "parked")
            settlement.lane, settlement.delay_ms = transition.lane, round(transition.retry.park_seconds * 1000)
            settlement.attempts, settlement.failing_since = attempts, since
        elif ending == "dead_letter":
            settlement = self._settlement(course, "dead", "dead")
            settlement.lane, settlement.attempts, settlement.failing_since = None, attempts, since
        else:
            return self._fail_by(course, ending, reason, cause or _cause(reason))
        settlement.error, settlement.cause = reason, cause or _cause(reason)
        return settlement

    def _fail_by(self, course: _Course, ending: str, reason: str, cause: str) -> Settlement:
        """Perform the declared failure transition; it is pure, and must not fail itself."""
        workflow = course.workflow
        transition = workflow.named(ending)
        course.work.error = reason
        try:
            self._perform(course, transition)
        except Exception as error:  # noqa: BLE001  # a failing failure is a dead letter, with both reasons
            settlement = self._settlement(course, "dead", "dead")
            settlement.lane, settlement.cause = None, cause
            settlement.error = f"{reason}; and {ending} failed: {describe(error)}"
            return settlement
        settlement = self._advanced(course)
        settlement.ended, settlement.error, settlement.cause = "failed", reason, cause
        return settlement

    def _settlement(self, course: _Course, standing: Any, ended: str) -> Settlement:
        lease = course.lease
        return Settlement(
            lease.id,
            lease.pipeline,
            lease.kind,
            lease.key,
            lease.token,
            lease.state,
            course.state,
            standing,
            None,
            0 if course.steps else lease.attempts,
            lease.revision,
            ended,
            body=_encode(course.body) if course.body is not None else None,
            accepts=course.accepts,
            presents=course.accepts,
            presentation=course.presentation,
            links=course.links,
            children=course.children,
            steps=course.steps,
        )

    def _parked_unknown(self, lease: Lease, what: str) -> Settlement:
        """Leave an item to those who know it: it is due again after a while, where it was claimed."""
        return Settlement(
            lease.id, lease.pipeline, lease.kind, lease.key, lease.token, lease.state, lease.state, "parked",
            lease.lane, lease.attempts - 1, lease.revision, "parked", delay_ms=round(MISCONFIGURED_PARK_SECONDS * 1000),
            error=f"{what}: is a part of this deployment older than the rest?", cause=what,
        )  # fmt: skip

    def _unreadable(self, lease: Lease, workflow: Workflow, error: Exception) -> Settlement:
        reason = f"the body cannot be read: {error}"
        return Settlement(
            lease.id, lease.pipeline, lease.kind, lease.key, lease.token, lease.state, lease.state, "dead", None,
            lease.attempts, lease.revision, "dead", error=reason, cause=f"unreadable body of {workflow.kind}",
        )  # fmt: skip


def describe(error: BaseException) -> str:
    """Say what went wrong in one line; our own errors speak for themselves."""
    if isinstance(error, (Transient, Permanent, Misconfigured)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _relate(course: _Course, related: dict[str, Any] | Exception) -> None:
    if isinstance(related, Exception):
        raise related
    course.work.related = related


def _cause(reason: str) -> str:
    """Cut a reason to what dead letters are grouped by."""
    return reason.split("\n", 1)[0][:160]


def _holds(transition: Transition, work: Work) -> bool:
    try:
        return transition.criterion is None or bool(transition.criterion(work))
    except Exception:  # noqa: BLE001  # the criterion itself was the surprise
        return False


def _step(transition: Transition, state: str, outcome: Advance, ms: float) -> Kept:
    made, note = outcome.provenance, outcome.note
    name, target, criterion = transition.name, transition.target, transition.criterion_name
    if made is None and note is None:
        return (name, target, ms) if criterion is None else (name, target, ms, criterion)
    held = None if criterion is None else HELD
    if made is None:
        return Step(name, state, target, ms, criterion, held, note)
    tokens = made.tokens_in + made.tokens_out
    return Step(name, state, target, ms, criterion, held, note, made.cost_micros, tokens, made.model)
