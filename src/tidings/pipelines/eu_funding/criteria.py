"""The yes-or-no questions of the opportunity workflow."""

from __future__ import annotations

from tidings.model.clock import DAY_MS
from tidings.model.outcome import No, Verdict
from tidings.model.workflow import Work
from tidings.pipelines.eu_funding.results import judged


def is_fresh(work: Work, *, queue_days: float) -> Verdict:
    """Tell whether the call has not waited too long in its queue to be news."""
    waiting_since = work.state_since_ms or work.body.found_at
    return work.now_ms - waiting_since <= queue_days * DAY_MS or No(f"waited longer than {queue_days:g} days")


def is_over(work: Work) -> bool:
    """Tell whether the call is closed, by its status or by the clock."""
    return judged(work.body.status, work.body.deadlines, work.now_ms) == "closed"


def is_running(work: Work) -> bool:
    """Tell whether the call is still to be followed."""
    return not is_over(work)
