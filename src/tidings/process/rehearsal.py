"""Carries one finding through its workflow in memory: what would be made of it. Nothing is kept, nothing is sent."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tidings.model.attempt import Attempt, choose, take
from tidings.model.contracts import Kit
from tidings.model.errors import TidingsError
from tidings.model.item import Finding, Lease
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.previews import Rehearsal
from tidings.model.workflow import Transition

STEPS_MAX = 30
SECONDS_MAX = 45.0


async def rehearse(pipeline: Pipeline, finding: Finding, kit: Kit) -> Rehearsal:
    """Perform the steps of the workflow until it is published, waits for a person or fails."""
    workflow = pipeline.workflows[finding.kind]
    attempt = _attempt(pipeline, finding, kit.clock.now_ms())
    told: list[str] = []
    error: str | None = None
    try:
        async with asyncio.timeout(SECONDS_MAX):
            for _ in range(STEPS_MAX):
                transition = choose(attempt)
                if transition is None or attempt.state in workflow.terminal:
                    break
                error = await _step(attempt, transition, kit, told)
                if error is not None:
                    break
    except TimeoutError:
        error = f"it took longer than {SECONDS_MAX:g} s"
    card = msgspec.json.decode(attempt.shown.value) if attempt.shown is not None else None
    return Rehearsal(steps=told, card=card, error=error)


async def _step(attempt: Attempt, transition: Transition, kit: Kit, told: list[str]) -> str | None:
    """Perform one step, or what stands in for it where it fails; return why the rehearsal ends here."""
    try:
        outcome = await _performed(attempt, transition, kit)
    except TidingsError as failure:
        instead = transition.retry.exhausted if transition.retry is not None else None
        other = next((each for each in attempt.workflow.transitions if each.name == instead), None)
        if other is None:
            return f"{transition.name}: {failure}"
        attempt.work.error = str(failure)
        told.append(f"{transition.name}: {failure}")
        transition, outcome = other, await _performed(attempt, other, kit)
    if not isinstance(outcome, Advance):
        told.append(f"{transition.name}: {outcome.reason}")
        return f"it ends here: {outcome.reason}"
    take(attempt, transition, outcome, 0.0)
    told.append(f"{transition.name}: {outcome.note}" if outcome.note else transition.name)
    return None


async def _performed(attempt: Attempt, transition: Transition, kit: Kit) -> Outcome:
    processor: Any = transition.processor
    if processor is None:
        return Advance()
    outcome: Outcome = processor(attempt.work) if transition.is_pure else await processor(attempt.work, kit)
    return outcome


def _attempt(pipeline: Pipeline, finding: Finding, now_ms: int) -> Attempt:
    workflow = pipeline.workflows[finding.kind]
    lease = Lease(
        id=0,
        pipeline=finding.pipeline,
        kind=finding.kind,
        key=finding.key,
        state=workflow.start,
        lane=None,
        token=0,
        attempts=1,
        revision=1,
        priority=finding.priority,
        granted_at=now_ms,
        lease_until=now_ms,
        failing_since=None,
        lost_leases=0,
        state_since=now_ms,
        body=finding.payload,
        accepted=None,
    )
    return Attempt(lease, workflow.work(lease), workflow, pipeline)
