"""A clock that tests move by hand."""

from __future__ import annotations


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, start_ms: int = 1_800_000_000_000) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """Return the time."""
        return self._now_ms

    def advance(self, *, seconds: float) -> None:
        """Move forward."""
        self._now_ms += round(seconds * 1000)
