"""The yes-or-no questions of the item workflow. A refusal names the field and the offending value."""

from __future__ import annotations

from tidings.model.outcome import No, Verdict
from tidings.model.workflow import Work
from tidings.pipelines.hacker_news.body import TYPES, ItemBody

HOUR_MS = 3_600_000
NEWER_ABOVE = "names what cannot stand above it"
"""The cause, without the values."""


def is_valid(work: Work) -> Verdict:
    """Tell whether the item has a positive id and a type we know."""
    body: ItemBody = work.body
    if body.id <= 0:
        return No(f"id: {body.id} is not positive")
    if body.type is None:
        return No("type: missing")
    if body.type not in TYPES:
        return No(f"type: {body.type[:100]!r} is none of {', '.join(TYPES)}")
    return True


def is_hierarchy_valid(work: Work) -> Verdict:
    """Tell whether a comment names its parent and an option its poll, and neither names itself."""
    body: ItemBody = work.body
    if body.type == "comment":
        return _names_another(body.id, "parent", body.parent)
    if body.type == "pollopt":
        return _names_another(body.id, "poll", body.poll)
    return True


def is_complete(work: Work) -> Verdict:
    """Tell whether every step left its mark, and the item stands somewhere."""
    body: ItemBody = work.body
    if body.misplaced is not None:
        return No(body.misplaced, NEWER_ABOVE)
    if body.ingested_at is None:
        return No("ingested_at: missing")
    if body.last_updated is None:
        return No("last_updated: missing")
    return is_hierarchy_valid(work)


def is_retryable(work: Work, *, max_retries: int = 3, window_ms: int = 24 * HOUR_MS) -> Verdict:
    """Tell whether a failed item may be tried again: few enough failures, the last of them not long ago."""
    body: ItemBody = work.body
    if body.retry_count >= max_retries:
        return No(f"retry_count: {body.retry_count} of {max_retries} used")
    if body.last_failure_at is None:
        return No("last_failure_at: missing")
    if work.now_ms - body.last_failure_at >= window_ms:
        return No(f"last_failure_at: more than {window_ms // HOUR_MS} h ago")
    return True


def _names_another(own: int, field: str, named: int | None) -> Verdict:
    if named is None:
        return No(f"{field}: missing")
    if named <= 0:
        return No(f"{field}: {named} is not positive", f"{field}: not positive")
    if named == own:
        return No(f"{field}: {named} is the item itself", f"{field}: the item itself")
    return True
