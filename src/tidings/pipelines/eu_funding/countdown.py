"""Tells that a deadline comes near: 30, 14 and 3 days ahead, by Brussels' calendar, each once for each deadline."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from msgspec.structs import replace

from tidings.pipelines.eu_funding.body import BRUSSELS, Opportunity, brussels_day, deadlines_ahead

DAYS_AHEAD = (30, 14, 3)
TOLD_FROM = time(8, 0)
"""The hour in Brussels from which a day's notices are told."""
EVENT = "closing-soon"


def today(now_ms: int) -> date:
    """Return the day it is in Brussels."""
    return datetime.fromtimestamp(now_ms / 1000, BRUSSELS).date()


def days_left(day: str, now_ms: int) -> int:
    """Count the days from today in Brussels to a day."""
    return (date.fromisoformat(day) - today(now_ms)).days


def counted(body: Opportunity, earlier: tuple[str, ...], now_ms: int) -> Opportunity:
    """Note every threshold that has come, told or not: what was missed while nobody looked is not told late."""
    ahead = {brussels_day(deadline) for deadline in deadlines_ahead(body, now_ms)}
    known = {mark for mark in earlier if mark.partition("/")[0] in ahead}
    due = {f"{day}/{days}" for day in ahead for days in DAYS_AHEAD if told_at(day, days) <= now_ms}
    return replace(body, countdown=tuple(sorted(known | due)))


def next_at(body: Opportunity, now_ms: int) -> int | None:
    """Return when the next threshold comes."""
    ahead = {brussels_day(deadline) for deadline in deadlines_ahead(body, now_ms)}
    moments = [told_at(day, days) for day in ahead for days in DAYS_AHEAD]
    return min((moment for moment in moments if moment > now_ms), default=None)


def told_at(day: str, days: int) -> int:
    """Return the instant from which people are told that a deadline's day is so many days ahead."""
    told = datetime.combine(date.fromisoformat(day) - timedelta(days=days), TOLD_FROM, BRUSSELS)
    return int(told.timestamp() * 1000)


def reached(before: tuple[str, ...], body: Opportunity, now_ms: int) -> list[tuple[str, int]]:
    """Return the deadlines' days, with their thresholds, that are to be told of now: those of today."""
    fresh = [mark.partition("/") for mark in body.countdown if mark not in before]
    return [(day, int(days)) for day, _, days in fresh if days_left(day, now_ms) == int(days)]
