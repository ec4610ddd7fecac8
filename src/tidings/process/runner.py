"""Runs attempts: prepares what they see, lets `model.course` carry them on, catches what they raise."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from tidings.model.attempt import Attempt, Bodies, choose, perform, relate, take
from tidings.model.contracts import Kit
from tidings.model.course import carry_on
from tidings.model.endings import advanced, ended, failed, refused, unknown, unreadable
from tidings.model.errors import Transient
from tidings.model.item import Lease
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Deliver, Pipeline, no_deliveries
from tidings.model.settlement import Settlement
from tidings.model.workflow import Transition, Work

DEADLINE_SHARE = 0.9


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

    def begin(self, lease: Lease, lease_seconds: float) -> Attempt | Settlement:
        """Prepare an attempt; an item that cannot even be read is settled at once."""
        pipeline = self._pipelines.get(lease.pipeline)
        workflow = pipeline.workflows.get(lease.kind) if pipeline else None
        if pipeline is None or workflow is None:
            return unknown(lease, f"unknown kind {lease.kind}")
        if lease.state not in workflow.states:
            return unknown(lease, f"unknown state {lease.state}")
        try:
            work = workflow.work(lease, deadline=self._monotonic() + lease_seconds * DEADLINE_SHARE)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            return unreadable(lease, error)
        return Attempt(lease, work, workflow, pipeline, self._deliver)

    def run_pure(self, attempt: Attempt) -> Settlement | None:
        """Carry an attempt on whose processors never wait; None where it has to see other items first."""
        try:
            return carry_on(attempt, self._monotonic)
        except Exception as error:  # noqa: BLE001  # the runner is where surprises are recorded
            return failed(attempt, error, self._rng)

    async def run_waiting(
        self, attempt: Attempt, kit: Kit, lease_seconds: float, prefetch: Callable[[Iterable[str]], Awaitable[Bodies]]
    ) -> Settlement:
        """Make one attempt with a processor that may wait, `lease_seconds` at most."""
        try:
            transition = choose(attempt)
            if transition is None:
                return refused(attempt)
            if transition.prefetch is not None:
                attempt.needs = tuple(transition.prefetch(attempt.work))
                relate(attempt, await prefetch(attempt.needs))
            started = self._monotonic()
            if transition.is_pure:
                outcome = perform(attempt, transition)
            else:
                outcome = await _within(lease_seconds, transition, attempt.work, kit)
            if not isinstance(outcome, Advance):
                return ended(attempt, transition, outcome)
            take(attempt, transition, outcome, self._monotonic() - started)
            return advanced(attempt)
        # Stopped, or the lease is lost: nothing is settled, and no try is used up.
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  # the runner is where surprises are recorded
            return failed(attempt, error, self._rng)


async def _within(seconds: float, transition: Transition, work: Work, kit: Kit) -> Outcome:
    processor: Any = transition.processor
    try:
        async with asyncio.timeout(seconds) as limit:
            outcome: Outcome = await processor(work, kit)
            return outcome
    except TimeoutError:
        # A processor may raise a TimeoutError of its own, which is no sign that the attempt took too long.
        if limit.expired():
            raise Transient(f"the attempt took longer than {seconds:g} s") from None
        raise
