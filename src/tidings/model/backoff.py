"""When to try again."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from tidings.model.errors import Misconfigured

RETRY_AFTER_SECONDS_MAX = 3600.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a transition is tried, and what happens when that is used up.

    `exhausted` is "dead_letter", "park", or the name of a declared failure transition. `refused` says the same for an
    item none of whose automatic transitions' criteria hold; None means as `exhausted`.
    """

    attempts: int = 5
    base_seconds: float = 2.0
    cap_seconds: float = 900.0
    jitter: float = 0.2
    window_seconds: float | None = None
    exhausted: str = "dead_letter"
    refused: str | None = None
    park_seconds: float = 6 * 3600.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise Misconfigured(f"a retry policy needs at least 1 attempt, not {self.attempts}")
        if not 0 < self.base_seconds <= self.cap_seconds:
            raise Misconfigured(f"backoff base {self.base_seconds} s must lie above 0 and not above the cap")
        if not 0 <= self.jitter < 1:
            raise Misconfigured(f"backoff jitter {self.jitter} must lie in [0, 1)")
        if self.window_seconds is not None and self.window_seconds < self.base_seconds:
            raise Misconfigured(f"retry window {self.window_seconds} s is shorter than its first wait")

    def delay_ms(self, attempt: int, rng: random.Random, at_least_seconds: float | None = None) -> int:
        """Return the wait after failed attempt number `attempt` (from 1), in milliseconds."""
        wait = self._wait_seconds(attempt) * (1 + self.jitter * rng.uniform(-1, 1))
        if at_least_seconds is not None:
            wait = max(wait, min(at_least_seconds, RETRY_AFTER_SECONDS_MAX))
        return max(1, round(wait * 1000))

    def delay_ms_max(self, attempt: int) -> int:
        """Return the longest wait that `delay_ms` may draw after that attempt."""
        return math.ceil(self._wait_seconds(attempt) * (1 + self.jitter) * 1000)

    def _wait_seconds(self, attempt: int) -> float:
        return min(self.cap_seconds, self.base_seconds * 2.0 ** min(attempt - 1, 40))

    def is_used_up(self, attempts: int, failing_ms: int) -> bool:
        """Tell whether no further try is allowed after `attempts` tries over `failing_ms`."""
        if attempts >= self.attempts:
            return True
        return self.window_seconds is not None and failing_ms >= self.window_seconds * 1000
