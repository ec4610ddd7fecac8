"""The life of an issue: found, detailed, analyzed, published; closed, and withdrawn after a while."""

from __future__ import annotations

from functools import partial

from tidings.model.backoff import RetryPolicy
from tidings.model.workflow import Transition, Workflow
from tidings.pipelines.first_issues.body_issue import IssueBody
from tidings.pipelines.first_issues.criteria_issue import is_closed, is_open, is_out_of_reach
from tidings.pipelines.first_issues.processors_issue import Details, analyze, close, forget, mark_failed, publish


def issue_workflow(details: Details, *, keep_closed_ms: int) -> Workflow:
    """Declare an issue's life."""
    fetching = RetryPolicy(attempts=8, base_seconds=60, cap_seconds=3600, exhausted="mark_failed")
    asking = RetryPolicy(attempts=6, base_seconds=60, cap_seconds=3600, exhausted="mark_failed")
    return Workflow(
        kind="issue",
        start="found",
        states=("found", "detailed", "analyzed", "published", "closed", "withdrawn", "failed"),
        transitions=(
            Transition("read_details", "found", "detailed", details, lane="fetch", retry=fetching),
            Transition("analyze", "detailed", "analyzed", analyze, is_open, lane="ai", retry=asking),
            Transition(
                "close",
                "detailed",
                "closed",
                partial(close, keep_closed_ms=keep_closed_ms),
                is_closed,
                lane="ai",
                publishes=True,
            ),
            Transition("withdraw", "detailed", "withdrawn", None, is_out_of_reach, lane="ai", publishes=True),
            Transition(
                "publish",
                "analyzed",
                "published",
                partial(publish, claim_holds_ms=details.claim_holds_ms),
                publishes=True,
            ),
            Transition("look_again", "published", "found", trigger="scheduled"),
            Transition("forget", "closed", "withdrawn", forget, trigger="scheduled", publishes=True),
            Transition(
                "mark_failed",
                ("found", "detailed", "analyzed"),
                "failed",
                mark_failed,
                trigger="manual",
                publishes=True,
            ),
            Transition("retry", "failed", "found", trigger="manual"),
        ),
        terminal=frozenset({"withdrawn"}),
        failures=frozenset({"failed"}),
        body=IssueBody,
    )
