"""A funding opportunity: what the portal says of one call, in our words, and how its deadlines are judged."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from tidings.model.item import fingerprint

KIND = "opportunity"

Status = Literal["forthcoming", "open", "closed"]
Type = Literal["tender", "grant", "call", "update", "cascade"]
STATUSES: tuple[Status, ...] = ("forthcoming", "open", "closed")


class Opportunity(msgspec.Struct, frozen=True, kw_only=True):
    """The body. Times are RFC 3339 UTC; a deadline at midnight stands for a day whose hour is not stated."""

    reference: str
    identifier: str
    """Of the topic; cascade calls share their parent's."""
    title: str
    type: Type
    status: Status
    """As judged when found: open needs a deadline ahead."""
    url: str
    language: str = "en"
    is_legacy: bool = False
    programme: str | None = None
    programme_name: str | None = None
    programme_code: str | None = None
    action_type: str | None = None
    call_identifier: str | None = None
    call_title: str | None = None
    project: str | None = None
    opening: str | None = None
    deadlines: tuple[str, ...] = ()
    """In order, past ones included."""
    stage: str | None = None
    budget_eur: int | None = None
    keywords: tuple[str, ...] = ()
    description: str = ""
    """Plain text."""
    ingested: str | None = None
    """When the portal first held it, where it says so."""
    found_at: int = 0
    is_baseline: bool = False
    """Found by the first run: it may be old news."""
    summary: str | None = None
    summarized_by: str | None = None
    first_found_at: int = 0
    """When the first published revision was found."""
    as_of: int = 0
    """The time the published view was judged at."""


def fingerprint_of(opportunity: Opportunity) -> str:
    """Hash what counts as a change; languages, sources and crawl times do not."""
    return fingerprint(
        opportunity.title,
        opportunity.status,
        opportunity.opening,
        opportunity.deadlines,
        opportunity.stage,
        opportunity.action_type,
        opportunity.programme_code,
        opportunity.budget_eur,
        opportunity.url,
        opportunity.description,
    )


def milliseconds(time: str) -> int:
    """Read one of our own times."""
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def deadlines_ahead(opportunity: Opportunity, now_ms: int) -> tuple[str, ...]:
    """Return the deadlines still to come; one that names only a day lasts until that day ends."""
    return tuple(deadline for deadline in opportunity.deadlines if closes_at(deadline) > now_ms)


def next_deadline(opportunity: Opportunity, now_ms: int) -> str | None:
    """Return the earliest deadline ahead or, when all are past, the last one."""
    ahead = deadlines_ahead(opportunity, now_ms)
    if ahead:
        return ahead[0]
    return opportunity.deadlines[-1] if opportunity.deadlines else None


def closes_at(deadline: str) -> int:
    """Return the instant a deadline has passed for good."""
    return milliseconds(deadline) + (86_400_000 if is_day(deadline) else 0)


def is_day(time: str) -> bool:
    """Tell whether a time stands for a whole day: its hour is not stated."""
    return time[10:] == "T00:00:00Z"


def same_deadlines(one: Iterable[str], other: Iterable[str]) -> bool:
    """Compare deadlines; a day and an hour of that day are the same, told more or less exactly."""
    ours, theirs = tuple(one), tuple(other)
    return len(ours) == len(theirs) and all(
        a == b or (a[:10] == b[:10] and (is_day(a) or is_day(b))) for a, b in zip(ours, theirs, strict=True)
    )


def spoken_date(time: str | None) -> str | None:
    """Write a date for people: `15 September 2026`, with the hour (UTC) where one is stated."""
    if time is None:
        return None
    moment = datetime.fromisoformat(time).astimezone(UTC)
    hour = "" if is_day(time) else f", {moment:%H:%M} UTC"
    return f"{moment.day} {moment:%B %Y}{hour}"
