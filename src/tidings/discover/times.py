"""Times as sites and their programs write them, in any usual form."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from tidings.discover.feed.entry import TIME_MS_MAX

_NUMBER = re.compile(r"-?\d{9,17}(?:\.\d+)?")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
_FORMS = (
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%d %B %Y %H:%M",
    "%d %b %Y %H:%M",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d %Y",
    "%b %d %Y",
    "%Y-%m-%d %H:%M:%S %z",
    "%Y-%m-%d %H:%M:%S UTC",
)
CHARS_MAX = 100


def time_ms(value: object) -> int | None:
    """Read a time as UTC milliseconds; None where it is none. One without a zone is UTC.

    Understood are RFC 3339 and its looser relatives, RFC 2822, seconds, milliseconds, microseconds or nanoseconds since
    1970, and days written 31.12.2026, 2026/12/31 or 31 December 2026. `12/11/2026` is nothing: it means two days.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return _since_1970(float(value))
    text = " ".join(str(value)[:CHARS_MAX].split())
    if _NUMBER.fullmatch(text):
        return _since_1970(float(text))
    moment = _iso(text) or _mail(text) or _written(text)
    return _milliseconds(moment) if moment is not None else None


def _since_1970(number: float) -> int | None:
    """Tell the unit by the size: each is read as a time between 1973 and 2100."""
    for unit in (1_000.0, 1.0, 0.001, 0.000001):
        ms = number * unit
        if 1e11 <= ms <= TIME_MS_MAX:
            return round(ms)
    return None


def _iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _mail(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text) if ":" in text else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _written(text: str) -> datetime | None:
    plain = _ORDINAL.sub("", text).replace(",", "")
    for form in _FORMS:
        try:
            return datetime.strptime(plain, form)  # noqa: DTZ007  # the zone is added by `_milliseconds`
        except ValueError:
            continue
    return None


def _milliseconds(moment: datetime) -> int | None:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        ms = round(aware.timestamp() * 1000)
    except (OverflowError, ValueError, OSError):
        return None
    return ms if 0 < ms <= TIME_MS_MAX else None
