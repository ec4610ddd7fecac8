"""The life of a repository: found, surveyed, summarized, published, and read again after a while."""

from __future__ import annotations

from functools import partial

from tidings.model.backoff import RetryPolicy
from tidings.model.workflow import Transition, Workflow
from tidings.pipelines.first_issues.body_repo import Availability, RepoBody
from tidings.pipelines.first_issues.criteria_repo import is_available, is_out_of_reach
from tidings.pipelines.first_issues.processors_repo import Survey, mark_failed, publish, summarize

WITHDRAWN: tuple[Availability, ...] = ("gone", "blocked", "moved", "unlisted")


def _withdraw(reason: Availability) -> Transition:
    criterion = partial(is_out_of_reach, because=reason)
    return Transition(f"mark_{reason}", "surveyed", reason, None, criterion, lane="ai", publishes=True)


def repo_workflow(survey: Survey, *, reread_seconds: float) -> Workflow:
    """Declare a repository's life."""
    fetching = RetryPolicy(attempts=8, base_seconds=60, cap_seconds=3600, exhausted="mark_failed")
    asking = RetryPolicy(attempts=6, base_seconds=60, cap_seconds=3600, exhausted="mark_failed")
    return Workflow(
        kind="repo",
        start="found",
        states=("found", "surveyed", "summarized", "published", *WITHDRAWN, "failed"),
        transitions=(
            Transition("survey", "found", "surveyed", survey, lane="fetch", retry=fetching),
            Transition("summarize", "surveyed", "summarized", summarize, is_available, lane="ai", retry=asking),
            *(_withdraw(reason) for reason in WITHDRAWN),
            Transition(
                "publish", "summarized", "published", partial(publish, reread_seconds=reread_seconds), publishes=True
            ),
            Transition("reread", "published", "found", trigger="scheduled"),
            Transition(
                "mark_failed",
                ("found", "surveyed", "summarized"),
                "failed",
                mark_failed,
                trigger="manual",
                publishes=True,
            ),
            Transition("retry", "failed", "found", trigger="manual"),
        ),
        terminal=frozenset(WITHDRAWN),
        failures=frozenset({"failed"}),
        body=RepoBody,
    )
