"""The yes-or-no questions of the repository workflow."""

from __future__ import annotations

from tidings.model.outcome import No, Verdict
from tidings.model.workflow import Work
from tidings.pipelines.first_issues.body_repo import Availability, RepoBody


def is_available(work: Work) -> Verdict:
    """Tell whether GitHub shows the repository."""
    body: RepoBody = work.body
    return body.availability == "available" or No(f"{body.full_name} is {body.availability}: {body.reason}")


def is_out_of_reach(work: Work, *, because: Availability) -> Verdict:
    """Tell whether the repository is not to be shown, for one reason."""
    return bool(work.body.availability == because)
