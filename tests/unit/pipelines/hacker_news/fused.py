"""Carry an item through its workflow in memory, as the worker does."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.unit.pipelines.hacker_news.working import NOW_MS, work_on

from tidings.model.errors import Permanent
from tidings.model.item import Finding
from tidings.pipelines.hacker_news.body import ItemBody
from tidings.pipelines.hacker_news.workflow import workflow


def live_through(
    finding: Finding, *, now_ms: int = NOW_MS, related: dict[str, Any] | None = None
) -> tuple[str, ItemBody]:
    """Return the state an item ends in, and its body."""
    life = workflow()
    work = work_on(
        msgspec.json.decode(finding.payload, type=ItemBody), state=life.start, now_ms=now_ms, related=related or {}
    )
    while steps := life.automatic_from(work.state):
        step = steps[0]
        try:
            verdict = step.criterion(work) if step.criterion else True
            if not verdict:
                raise Permanent(f"{step.criterion.__name__}: {verdict.reason}")  # type: ignore[union-attr]
            outcome: Any = step.processor(work) if step.processor else None
        except Permanent as error:
            work.error = str(error)
            step = life.named("mark_failed")
            outcome = step.processor(work)  # type: ignore[misc]
        work.body = outcome.body if outcome is not None and outcome.body is not None else work.body
        work.state = step.target
    return work.state, work.body
