"""Time, passed in. The database's clock decides leases; this one serves schedules, bodies and waits."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

DAY_MS = 86_400_000


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


class ManualClock:
    """A clock that tests and the sample world move by hand."""

    def __init__(self, start_ms: int = 1_800_000_000_000) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """Return the time."""
        return self._now_ms

    def advance(self, *, seconds: float) -> None:
        """Move forward, or back."""
        self._now_ms += round(seconds * 1000)


def rfc3339(ms: int | None) -> str | None:
    """Write a time the way every interface of ours does."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def day_of(ms: int) -> str:
    """Return the UTC day a time falls on, as YYYY-MM-DD."""
    return datetime.fromtimestamp(ms / 1000, UTC).date().isoformat()
