"""The life of a Hacker News item: seven steps to completion, and the way back from failure."""

from __future__ import annotations

from functools import partial

from tidings.model.backoff import RetryPolicy
from tidings.model.workflow import ANY, Transition, Workflow
from tidings.pipelines.hacker_news.body import KIND, ItemBody
from tidings.pipelines.hacker_news.criteria import HOUR_MS, is_complete, is_hierarchy_valid, is_retryable, is_valid
from tidings.pipelines.hacker_news.processors import (
    deduplicate,
    index,
    ingest,
    named_above,
    prepare_retry,
    record_failure,
    resolve_hierarchy,
    validate,
)

FAILS = RetryPolicy(attempts=3, exhausted="mark_failed")
"""A step that raises is tried three times; then, or at once where a criterion refuses, the item is marked failed."""


def workflow(*, max_retries: int = 3, retry_window_hours: float = 24, retry_base_seconds: float = 60) -> Workflow:
    """Declare it."""
    window_ms = round(retry_window_hours * HOUR_MS)
    fail = partial(
        record_failure, max_retries=max_retries, window_ms=window_ms, base_ms=round(retry_base_seconds * 1000)
    )
    may_retry = partial(is_retryable, max_retries=max_retries, window_ms=window_ms)
    return Workflow(
        kind=KIND,
        start="initial_state",
        states=(
            "initial_state",
            "ingested",
            "validated",
            "deduplicated",
            "hierarchy_resolved",
            "indexed",
            "completed",
            "failed",
        ),
        transitions=(
            Transition("auto_ingest", "initial_state", "ingested", ingest, retry=FAILS),
            Transition("validate_item", "ingested", "validated", validate, is_valid, retry=FAILS),
            Transition("check_duplicates", "validated", "deduplicated", deduplicate, retry=FAILS),
            Transition(
                "resolve_hierarchy",
                "deduplicated",
                "hierarchy_resolved",
                resolve_hierarchy,
                is_hierarchy_valid,
                retry=FAILS,
                prefetch=named_above,
            ),
            Transition("index_item", "hierarchy_resolved", "indexed", index, retry=FAILS, publishes=True),
            Transition("complete_processing", "indexed", "completed", None, is_complete, retry=FAILS),
            Transition("mark_failed", ANY, "failed", fail, trigger="manual"),
            Transition(
                "retry_processing",
                "failed",
                "ingested",
                prepare_retry,
                may_retry,
                trigger="scheduled",
            ),
        ),
        terminal=frozenset({"completed"}),
        failures=frozenset({"failed"}),
        body=ItemBody,
        # Each copy is merged, field by field, into what the copies before it have made.
        in_turn=True,
    )
