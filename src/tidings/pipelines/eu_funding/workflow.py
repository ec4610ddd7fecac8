"""The life of an opportunity: found, summarized, published, and closed once its last deadline is over."""

from __future__ import annotations

from functools import partial

from tidings.model.backoff import RetryPolicy
from tidings.model.workflow import Transition, Workflow
from tidings.pipelines.eu_funding.body import (
    KIND,
    Opportunity,
)
from tidings.pipelines.eu_funding.criteria import is_fresh, is_over, is_running
from tidings.pipelines.eu_funding.processors import close, publish, summarize


def opportunity_workflow(*, pages_url: str, summarize_attempts: int, queue_days: float) -> Workflow:
    """Declare the workflow.

    What waits longer than `queue_days` to be summarized becomes a dead letter whose cause says so: it is counted,
    alerted and can be revived, which starts its wait again.
    """
    return Workflow(
        kind=KIND,
        # The seen records of the portal: a call that has closed and gone is not announced as new because a row changed.
        tombstones_are_final=True,
        start="found",
        states=("found", "summarized", "published", "closed"),
        terminal=frozenset({"closed"}),
        body=Opportunity,
        transitions=(
            Transition(
                "summarize",
                "found",
                "summarized",
                processor=partial(summarize, pages_url=pages_url),
                criterion=partial(is_fresh, queue_days=queue_days),
                lane="ai",
                retry=RetryPolicy(attempts=summarize_attempts, base_seconds=60, cap_seconds=3600),
            ),
            Transition("publish_closed", "summarized", "closed", close, is_over, publishes=True),
            Transition("publish", "summarized", "published", publish, publishes=True),
            Transition("pass_deadline", "published", "published", publish, is_running, "scheduled", publishes=True),
            Transition("close", "published", "closed", close, trigger="scheduled", publishes=True),
        ),
    )
