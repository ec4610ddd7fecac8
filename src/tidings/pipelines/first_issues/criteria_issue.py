"""The yes-or-no questions of the issue workflow."""

from __future__ import annotations

from tidings.model.outcome import No, Verdict
from tidings.model.workflow import Work
from tidings.pipelines.first_issues.body_issue import IssueBody


def is_open(work: Work) -> Verdict:
    """Tell whether the issue may still be taken."""
    body: IssueBody = work.body
    return body.state == "open" or No(f"{body.repo}#{body.number} is {body.state}")


def is_closed(work: Work) -> Verdict:
    """Tell whether the issue is done."""
    return bool(work.body.state == "closed")


def is_out_of_reach(work: Work) -> Verdict:
    """Tell whether the issue is no longer one for beginners, or no longer there."""
    return bool(work.body.state in ("unlisted", "deleted", "moved"))
