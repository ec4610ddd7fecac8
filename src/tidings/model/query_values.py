"""What qualifiers compare: numbers, and times as people write them (`2016`, `2016-05-17`, `7d`, `yesterday`)."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import NamedTuple

from tidings.model.clock import DAY_MS, read_time
from tidings.model.durations import duration_seconds
from tidings.model.errors import BadInput
from tidings.model.query_tree import AllOf, Compare, Part
from tidings.model.vocabulary import MOMENTS

NUMBER_NAMES = frozenset({"score"})
AGO_SECONDS_MAX = 1e11
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_YEAR_OR_MONTH = re.compile(r"(?P<year>\d{4})(-(?P<month>\d{2}))?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_LONG_AGO = re.compile(r"(?P<count>\d{1,4})\s*(?P<unit>mo|months?|y|years?)")
_DAYS_BACK = {"today": 0, "yesterday": 1}


class Span(NamedTuple):
    """From one value up to, but without, another: a day, a month, a year; a number or a moment is its own span."""

    start: float
    end: float


def is_number(text: str) -> bool:
    """Tell whether a text is a number."""
    return _NUMBER.fullmatch(text) is not None


def since_or_before(name: str, text: str, now_ms: int, position: int) -> Compare:
    """Compare the document's time: `after:` and `since:` include what they name, `before:` and `until:` do not."""
    return Compare("time", MOMENTS[name], _time(text, now_ms, position).start)


def compared(name: str, operator: str, text: str, now_ms: int, position: int) -> Part:
    """Compare a named value; a day is compared as a whole: behind it (>), until its end (<=), on it (=)."""
    if operator == "=" and name != "time":
        return Compare(name, "=", text)
    span = _bound(name, text, now_ms, position)
    if span is None:
        raise BadInput(f"{name}:{operator} compares numbers or dates; {text!r} is neither", position=position)
    if operator == "=":
        return AllOf((Compare(name, ">=", span.start), Compare(name, "<", span.end)))
    return _ordered(name, operator, span)


def between(name: str, low: str, high: str, now_ms: int, position: int) -> Part | None:
    """Return what holds from `low` to `high`, both included; None where these are no limits but a plain value."""
    if not low and not high:
        return None
    limits = [_limit(name, text, now_ms, position) for text in (low, high) if text]
    if None in limits:
        return None
    parts: list[Part] = []
    if low and limits[0] is not None:
        parts.append(_ordered(name, ">=", limits[0]))
    if high and limits[-1] is not None:
        parts.append(_ordered(name, "<=", limits[-1]))
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _limit(name: str, text: str, now_ms: int, position: int) -> Span | None:
    found = _bound(name, text, now_ms, position)
    if found is None and name in NUMBER_NAMES:
        raise BadInput(f"{name}: ranges go from one number to another, such as {name}:5..20", position=position)
    return found


def _ordered(name: str, operator: str, span: Span) -> Compare:
    if span.end > span.start:
        is_behind, is_included = operator.startswith(">"), operator.endswith("=")
        return Compare(name, ">=" if is_behind else "<", span.start if is_behind == is_included else span.end)
    return Compare(name, operator, span.start)  # type: ignore[arg-type]  # the parser allows only these


def _bound(name: str, text: str, now_ms: int, position: int) -> Span | None:
    if name == "time" or re.match(r"\d{4}-\d", text):
        return _time(text, now_ms, position)
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if not math.isfinite(number):
        raise BadInput(f"{name}: needs a finite number", position=position)
    return Span(number, number)


def _time(text: str, now_ms: int, position: int) -> Span:
    found = _calendar(text) or _back(text.lower(), now_ms)
    if found is None:
        raise BadInput(
            f"{text!r} is no date; write one like 2026-01-31, 2026-01 or 2026, or a time ago like 7d", position=position
        )
    return found


def _calendar(text: str) -> Span | None:
    """Read a year, a month, a day or an exact moment."""
    match = _YEAR_OR_MONTH.fullmatch(text)
    if match is not None:
        year, month = int(match["year"]), match["month"]
        start = _first_day(year, int(month or 1))
        end = _first_day(year + 1, 1) if month is None else _first_day(year + int(month) // 12, int(month) % 12 + 1)
        return Span(start, end) if start is not None and end is not None else None
    moment = read_time(text)
    if moment is None:
        return None
    return Span(moment, moment + (DAY_MS if _DAY.fullmatch(text) else 0))


def _first_day(year: int, month: int) -> float | None:
    try:
        return datetime(year, month, 1, tzinfo=UTC).timestamp() * 1000
    except ValueError:
        return None


def _back(text: str, now_ms: int) -> Span | None:
    """Read a length of time back from now, or a day by its name."""
    if text in _DAYS_BACK:
        start = now_ms - now_ms % DAY_MS - _DAYS_BACK[text] * DAY_MS
        return Span(start, start + DAY_MS)
    seconds = _seconds(text)
    if seconds is None:
        return None
    moment = max(now_ms - round(seconds * 1000), 0)
    return Span(moment, moment)


def _seconds(text: str) -> float | None:
    if match := _LONG_AGO.fullmatch(text):
        return int(match["count"]) * (365 if match["unit"].startswith("y") else 30) * DAY_MS / 1000
    if not text[-1:].isalpha():
        return None
    try:
        return min(duration_seconds(text), AGO_SECONDS_MAX)
    except ValueError:
        return None
