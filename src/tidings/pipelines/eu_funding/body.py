"""A funding opportunity: what the portal says of one call, in our words, and how its deadlines are judged."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from tidings.model.clock import read_time
from tidings.model.item import fingerprint

PIPELINE = "eu_funding"
KIND = "opportunity"
BRUSSELS = ZoneInfo("Europe/Brussels")
BRUSSELS_HOURS = (time(17, 0), time(23, 59))
"""Hours the portal writes as UTC and means as Brussels time.

Of 312 recorded deadlines at these hours 243 are in summer and 69 in winter; an hour that was really converted to UTC
would differ by one between them. To speak of the earlier hour is safe, and a call is closed by the later one.
"""

Status = Literal["forthcoming", "open", "closed"]
Type = Literal["tender", "grant", "call", "update", "cascade"]
STATUSES: tuple[Status, ...] = ("forthcoming", "open", "closed")


class Opportunity(msgspec.Struct, frozen=True, kw_only=True):
    """The body. Times are RFC 3339 UTC; a deadline at midnight stands for a day in Brussels, its hour is not stated."""

    reference: str
    identifier: str
    """Of the topic; cascade calls share their parent's."""
    title: str
    type: Type
    status: Status
    """As judged when found: open needs a deadline ahead, or none that can be read."""
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
    countdown: tuple[str, ...] = ()
    """The thresholds that have come: a deadline's day in Brussels and how many days ahead, `2027-09-21/14`."""
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


def instant(moment: str) -> int:
    """Return one of the body's times in milliseconds."""
    return read_time(moment) or 0


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
    if not is_day(deadline):
        return instant(deadline)
    next_day = in_brussels(deadline).date() + timedelta(days=1)
    return int(datetime.combine(next_day, time(), BRUSSELS).timestamp() * 1000)


def is_day(moment: str) -> bool:
    """Tell whether a time stands for a whole day, its hour not stated: midnight, as written or in Brussels."""
    return in_brussels(moment).time() == time()


def in_brussels(moment: str) -> datetime:
    """Return one of the body's times as a clock in Brussels shows it; a day stays the day that it names."""
    utc = datetime.fromisoformat(moment)
    is_local = utc.time() in (time(), *BRUSSELS_HOURS)
    return utc.replace(tzinfo=BRUSSELS) if is_local else utc.astimezone(BRUSSELS)


def brussels_day(moment: str) -> str:
    """Return the day a time falls on in Brussels, as YYYY-MM-DD."""
    return in_brussels(moment).date().isoformat()


def same_deadlines(one: Iterable[str], other: Iterable[str]) -> bool:
    """Compare deadlines; a day and an hour of that day are the same, told more or less exactly."""
    ours, theirs = tuple(one), tuple(other)
    return len(ours) == len(theirs) and all(
        a == b or (brussels_day(a) == brussels_day(b) and (is_day(a) or is_day(b)))
        for a, b in zip(ours, theirs, strict=True)
    )


def spoken_amount(euros: int | None) -> str | None:
    """Write an amount for people: `EUR 20 million`, `EUR 1.5 million`, `EUR 60,000`."""
    if not euros:
        return None
    if euros < 1_000_000:
        return f"EUR {euros:,}"
    return "EUR " + f"{euros / 1_000_000:,.2f}".rstrip("0").rstrip(".") + " million"


def spoken_date(moment: str | None) -> str | None:
    """Write a date for people: `15 September 2026`, with the hour in Brussels where one is stated."""
    if moment is None:
        return None
    local = in_brussels(moment)
    hour = "" if is_day(moment) else f", {local:%H:%M} Brussels time"
    return f"{local.day} {local:%B %Y}{hour}"
