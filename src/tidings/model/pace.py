"""A pace: at most so many starts a minute, in this process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

UNLIMITED = 1 << 30


class Pace:
    """Counts starts and says when the next one may be.

    At most `burst` starts fall into any stretch of `burst` minutes divided by `per_minute`. So a burst of 1 keeps
    starts evenly apart, and a burst as large as the rate, which is the default, allows a whole minute's starts at once.
    Without a rate everything may start.
    """

    def __init__(
        self, per_minute: float | None, *, burst: int | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_minute = per_minute
        self._now = now
        # A rate below one a minute still lets one start, less than once a minute.
        self._burst = burst or max(1, int(per_minute or 1))
        self._stretch_seconds = self._burst * 60.0 / per_minute if per_minute else 0.0
        self._starts: deque[float] = deque(maxlen=self._burst)
        self._held_until = float("-inf")

    def free(self) -> int:
        """Return how many may start now."""
        now = self._now()
        if now < self._held_until:
            return 0
        if self._per_minute is None:
            return UNLIMITED
        return self._burst - sum(start > now - self._stretch_seconds for start in self._starts)

    def wait_seconds(self) -> float:
        """Return how long to wait until the next may start; 0 means now."""
        earliest = self._held_until
        if len(self._starts) == self._burst:
            earliest = max(earliest, self._starts[0] + self._stretch_seconds)
        return max(0.0, earliest - self._now())

    def take(self, starts: int = 1) -> None:
        """Count starts, each at the time when it may be: now, or after `wait_seconds`."""
        if self._per_minute is not None:
            for _ in range(starts):
                self._starts.append(self._now() + self.wait_seconds())

    def hold(self, seconds: float) -> None:
        """Let nothing start for a while: we were asked to slow down."""
        self._held_until = max(self._held_until, self._now() + seconds)
