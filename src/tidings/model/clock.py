"""Time, passed in. The database's clock decides leases; this one serves schedules, bodies and waits."""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo
from typing import Protocol

DAY_MS = 86_400_000
TIME_CHARS_MAX = 40
YEAR_1_MS, YEAR_9999_MS = -62_135_596_800_000, 253_402_300_799_999


class Clock(Protocol):
    """A wall clock in UTC milliseconds."""

    def now_ms(self) -> int:
        """Return the time."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the time."""
        return time.time_ns() // 1_000_000


def rfc3339(ms: int | None) -> str | None:
    """Write a time the way every interface of ours does."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(text: object, zone: tzinfo | None = UTC) -> int | None:
    """Read an ISO 8601 time or day into UTC milliseconds; None for anything else, and for years beyond 1 to 9999.

    A time that names no zone is taken to be in `zone`; where that is None, such a time is refused.
    """
    if not isinstance(text, str) or len(text) > TIME_CHARS_MAX:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None and zone is None:
            return None
        ms = round((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return ms if YEAR_1_MS <= ms <= YEAR_9999_MS else None


def seconds_left_in_day(now_ms: int) -> float:
    """Return how long the UTC day still lasts: daily budgets, ours and those of most services, begin with the next."""
    return (DAY_MS - now_ms % DAY_MS) / 1000


def day_of(ms: int) -> str:
    """Return the UTC day a time falls on, as YYYY-MM-DD."""
    return datetime.fromtimestamp(ms / 1000, UTC).date().isoformat()
