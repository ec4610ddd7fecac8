"""What a manual transition makes of an item: criterion and processor are pure, so this is too."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

import msgspec

from tidings.model.errors import BadInput, TidingsError
from tidings.model.item import HELD, Finding, Item, Link, Step
from tidings.model.outcome import Advance
from tidings.model.pipeline import Deliver, Pipeline, no_deliveries
from tidings.model.publication import Presentation
from tidings.model.workflow import Work, leaves, name_of


@dataclass(frozen=True, slots=True)
class ByHand:
    """The move a person asked for, ready to be written."""

    state: str
    standing: str
    lane: str | None
    due_at: int | None
    body: bytes | None
    links: tuple[Link, ...] | None
    publishes: bool
    presentation: Presentation | None
    children: tuple[Finding, ...]
    """Those the processor named, and the notices of what is published."""
    error: str | None
    step: Step


def perform_by_hand(
    pipeline: Pipeline,
    item: Item,
    body: bytes,
    accepted: bytes | None,
    name: str,
    *,
    now_ms: int,
    reason: str,
    deliver: Deliver = no_deliveries,
) -> ByHand:
    """Perform a manual transition, or raise BadInput saying why it is not allowed now."""
    workflow = pipeline.workflows.get(item.kind)
    if workflow is None:
        raise BadInput(f"nobody here knows the kind {item.kind!r} of {pipeline.name}")
    transition = next((t for t in workflow.by_hand_from(item.state) if t.name == name), None)
    if transition is None:
        allowed = ", ".join(t.name for t in workflow.by_hand_from(item.state)) or "none"
        known = any(t.name == name for t in workflow.transitions)
        what = f"{name!r} does not start in state {item.state!r}" if known else f"there is no transition {name!r}"
        raise BadInput(f"{what}; by hand from here: {allowed}")
    assert leaves(transition, item.state)
    decode = msgspec.json.Decoder(workflow.body if workflow.body is not None else Any).decode
    work = Work(
        pipeline.name,
        item.kind,
        item.key,
        item.state,
        item.attempts,
        item.revision,
        now_ms,
        decode(body),
        decode(accepted) if accepted is not None else None,
        error=reason,
        item_id=item.id,
    )
    verdict = transition.criterion(work) if transition.criterion else True
    if not verdict:
        why = getattr(verdict, "reason", "it does not hold")
        raise BadInput(f"{name} is not allowed now: {name_of(transition.criterion)}: {why}")
    try:
        outcome = transition.processor(work) if transition.processor else Advance()
    except TidingsError as error:
        raise BadInput(f"{name} failed: {error}") from error
    assert not isinstance(outcome, Awaitable)  # a declared transition by hand is pure
    if not isinstance(outcome, Advance):
        raise BadInput(f"{name} was refused: {outcome.reason}")
    if outcome.body is not None:
        work.body = outcome.body
    presenter = pipeline.presenters.get(item.kind) if transition.publishes else None
    announce = pipeline.announce.get(item.kind) if transition.publishes else None
    notices = deliver(work, announce(work)) if announce else ()
    goes_on = bool(workflow.automatic_from(transition.target))
    due_at = now_ms if goes_on else outcome.due_at
    standing = workflow.standing_in(transition.target, due=due_at is not None)
    return ByHand(
        state=transition.target,
        standing=standing,
        lane=workflow.lane_of(transition.target) if due_at is not None else None,
        due_at=due_at,
        body=msgspec.json.encode(outcome.body) if outcome.body is not None else None,
        links=outcome.links,
        publishes=transition.publishes,
        presentation=presenter(item.key, work.body) if presenter else None,
        children=outcome.children + notices,
        error=reason if transition.target in workflow.failures else None,
        step=Step(
            name,
            item.state,
            transition.target,
            criterion=name_of(transition.criterion) if transition.criterion else None,
            verdict=HELD if transition.criterion else None,
            note=outcome.note,
        ),
    )
