"""What is announced of an opportunity: once when it is new, and once for each changed deadline or status."""

from __future__ import annotations

from datetime import datetime

import msgspec

from tidings.model.clock import DAY_MS, rfc3339
from tidings.model.publication import Notice, NoticeField
from tidings.model.workflow import Work
from tidings.pipelines.eu_funding.body import (
    BRUSSELS,
    Opportunity,
    Status,
    brussels_day,
    closes_at,
    deadlines_ahead,
    instant,
    is_day,
    next_deadline,
    same_deadlines,
    spoken_amount,
    spoken_date,
)
from tidings.pipelines.eu_funding.cards import search_attributes
from tidings.pipelines.eu_funding.countdown import EVENT, days_left, reached
from tidings.pipelines.eu_funding.facts import text_of
from tidings.pipelines.eu_funding.programmes import TYPE_NAMES
from tidings.pipelines.eu_funding.results import judged

COLORS: dict[Status, int] = {"open": 0x2EA043, "forthcoming": 0x1F6FEB, "closed": 0x6E7681}
STATUS_NAMES: dict[Status, str] = {"open": "Open", "forthcoming": "Forthcoming", "closed": "Closed"}


def announce(work: Work, *, max_age_days: float) -> tuple[Notice, ...]:
    """Return the notice a publication is worth, if any; `work.accepted` is what readers saw before.

    A published call that is shown again only because a deadline passed is no news; that one comes near is.
    """
    body: Opportunity = work.body
    before: Opportunity | None = work.accepted
    marks = before.countdown if before is not None else ()
    near = [closing_notice(body, day, days, work.now_ms) for day, days in reached(marks, body, work.now_ms)]
    if work.state == "published":
        return tuple(near)
    if before is None:
        new = () if is_old_news(body, work.now_ms, max_age_days) else (notice_of(body, work.now_ms),)
        return (*new, *near)
    changed = changes(before, body, work.now_ms)
    return (*([notice_of(body, work.now_ms, changed)] if changed else []), *near)


def renew(body: Opportunity, queued: Notice, now_ms: int) -> Notice | None:
    """Tell of the call as it is now; a notice of an open or forthcoming call that has closed meanwhile is untrue.

    What changed is told in the words of the day it changed; status, dates and color are those of now.
    """
    status = judged(body.status, body.deadlines, now_ms)
    if status == "closed" and queued.attributes.get("status") != "closed":
        return None
    if queued.attributes.get("event") == EVENT:
        return _still_closing(body, queued, now_ms)
    changed = [queued.changes] if queued.changes else None
    notice = notice_of(msgspec.structs.replace(body, status=status), now_ms, changed)
    if _first(queued.attributes.get("event")) == "update" and changed is None:
        # Queued by a release that kept no changes apart: its own words tell them.
        notice = msgspec.structs.replace(notice, title=queued.title, text=queued.text)
    return msgspec.structs.replace(notice, attributes={**notice.attributes, "event": queued.attributes.get("event")})


def closing_notice(body: Opportunity, day: str, days: int, now_ms: int) -> Notice:
    """Write the notice that a deadline comes near."""
    plain = notice_of(body, now_ms)
    deadline = next((each for each in deadlines_ahead(body, now_ms) if brussels_day(each) == day), day)
    left = days_left(day, now_ms)
    told = f"Closes in {left} day{'' if left == 1 else 's'}: {spoken_date(deadline)}."
    return msgspec.structs.replace(
        plain,
        title=f"Closes in {left} day{'' if left == 1 else 's'}: {body.title}",
        text="\n\n".join(filter(None, (told, plain.summary))),
        changes=told,
        attributes={**plain.attributes, "event": EVENT, "closes": left, "closing_day": day},
        occasion=f"closes/{day}/{days}",
    )


def _still_closing(body: Opportunity, queued: Notice, now_ms: int) -> Notice | None:
    """Tell that a deadline comes near as long as that is news: on its day or the next, if it has not moved."""
    day, days = queued.attributes.get("closing_day"), queued.attributes.get("closes")
    ahead = {brussels_day(deadline) for deadline in deadlines_ahead(body, now_ms)}
    if not isinstance(day, str) or not isinstance(days, int) or day not in ahead:
        return None
    return closing_notice(body, day, days, now_ms) if days - days_left(day, now_ms) in (0, 1) else None


def _first(event: object) -> object:
    return event[0] if isinstance(event, list) and event else event


def is_old_news(body: Opportunity, now_ms: int, max_age_days: float) -> bool:
    """Tell whether a call should enter silently: it is over, or the first run found it and it is not recent.

    The first run makes a baseline instead of a flood. A forthcoming call opens later: its age is that of its entry in
    the portal, where stated. An open call without a deadline may have been forgotten there years ago: it is news only
    if its other dates are recent, whichever run found it.
    """
    if body.status == "closed":
        return True
    if body.status == "open" and not body.deadlines and (date := body.opening or body.ingested):
        return now_ms - instant(date) > max_age_days * DAY_MS
    since = body.ingested or (None if body.status == "forthcoming" else body.opening)
    return body.is_baseline and (since is None or now_ms - instant(since) > max_age_days * DAY_MS)


def changes(before: Opportunity, after: Opportunity, now_ms: int) -> list[str]:
    """Say what changed that people should know.

    Deadlines that passed do not count, nor does a call that closes on the day it said it would.
    """
    sentences: list[str] = []
    if after.status != before.status and not _closed_as_foreseen(after, now_ms):
        sentences.append(f"Status: {STATUS_NAMES[before.status].lower()} → {STATUS_NAMES[after.status].lower()}.")
    if after.status != "closed":
        # The portal often states a budget weeks after the call: only a stated one that becomes another is news.
        amounts = [spoken_amount(each.budget_eur) for each in (before, after)]
        if all(amounts) and amounts[0] != amounts[1]:
            sentences.append(f"Budget: {amounts[0]} → {amounts[1]}.")
        earlier, later = deadlines_ahead(before, now_ms), deadlines_ahead(after, now_ms)
        if not same_deadlines(earlier, later):
            sentences.append(
                f"{'Deadlines' if max(len(earlier), len(later)) > 1 else 'Deadline'}: {_moved(earlier, later)}."
            )
    return sentences


def notice_of(body: Opportunity, now_ms: int, changed: list[str] | None = None) -> Notice:
    """Write the notice: title, summary, color by status and the eight fields."""
    summary, changed_text = text_of(body, now_ms), " ".join(changed or ())
    return Notice(
        title=f"Update: {body.title}" if changed else body.title,
        url=body.url,
        text="\n\n".join(filter(None, (changed_text, summary))),
        summary=summary,
        changes=changed_text,
        color=COLORS[body.status],
        fields=tuple(field for field in _fields(body, now_ms) if field.value),
        time=rfc3339(now_ms),
        attributes={
            **search_attributes(body, now_ms),
            "by": body.programme,
            "event": ["update", *events_of(changed, body.status)] if changed else "new",
        },
        language=body.language,
    )


def events_of(changed: list[str], status: Status) -> list[str]:
    """Name what changed in the words that routes ask by."""
    opened = "opened" if status == "open" else "status-changed"
    names = {"Status": opened, "Budget": "budget-changed", "Deadline": "deadline-moved", "Deadlines": "deadline-moved"}
    said = " ".join(changed)
    return [*dict.fromkeys(event for word, event in names.items() if f"{word}: " in said)]


def _fields(body: Opportunity, now_ms: int) -> list[NoticeField]:
    programme = f"{body.programme_name} ({body.programme})" if body.programme_name else body.programme
    return [
        NoticeField("Identifier", body.identifier, inline=False),
        NoticeField("Status", STATUS_NAMES[body.status]),
        NoticeField("Type", TYPE_NAMES[body.type]),
        NoticeField("Opening date", spoken_date(body.opening) or ""),
        _deadline(body, now_ms),
        NoticeField("Budget", spoken_amount(body.budget_eur) or ""),
        NoticeField("Stage", (body.stage or "").capitalize()),
        NoticeField("Programme", programme or ""),
        NoticeField("Action type", body.action_type or ""),
    ]


def _deadline(body: Opportunity, now_ms: int) -> NoticeField:
    """Tell the next deadline. One that states only a day ends with that day in Brussels."""
    if not body.deadlines and body.status != "closed":
        return NoticeField("Deadline", "Not stated")
    following = next_deadline(body, now_ms)
    if following is None:
        return NoticeField("Deadline", "")
    ahead = deadlines_ahead(body, now_ms)
    spoken = f"{spoken_date(following)}{f' (next of {len(ahead)})' if len(ahead) > 1 else ''}"
    return NoticeField("Deadline", spoken, time=rfc3339(closes_at(following)), is_day=is_day(following))


def _moved(earlier: tuple[str, ...], later: tuple[str, ...]) -> str:
    """Name the dates on both sides, leaving out the ones they share."""
    gone = [spoken_date(each) for each in earlier if each not in later][:5]
    come = [spoken_date(each) for each in later if each not in earlier][:5]
    return f"{', '.join(filter(None, gone)) or 'none'} → {', '.join(filter(None, come)) or 'none'}"


def _closed_as_foreseen(after: Opportunity, now_ms: int) -> bool:
    today = datetime.fromtimestamp(now_ms / 1000, BRUSSELS).date().isoformat()
    is_last_day = bool(after.deadlines) and all(brussels_day(each) <= today for each in after.deadlines)
    return after.status == "closed" and is_last_day


SAMPLE = Opportunity(
    reference="00000000TOPICSen",
    identifier="SAMPLE-2027-HARBOUR-01",
    title="Quiet harbours: a sample notice from tidings",
    type="grant",
    status="open",
    url="https://ec.europa.eu/info/funding-tenders/opportunities/portal/screen/home",
    programme="HORIZON",
    programme_name="Horizon Europe",
    programme_code="43108390",
    action_type="HORIZON Innovation Actions",
    opening="2027-01-12T00:00:00Z",
    deadlines=("2027-09-21T15:00:00Z",),
    stage="single-stage",
    budget_eur=20_000_000,
    summary="If you can read this, the channel works. Real notices carry a summary of the call here.",
    found_at=1_800_000_000_000,
)
"""Invented: no such call exists."""
