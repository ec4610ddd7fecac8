"""Rate limits per client, in this process: a leaky bucket that lets a minute's worth through at once."""

from __future__ import annotations

import time
from collections.abc import Callable

_CLIENTS_MAX = 10_000


class Rate:
    """At most `per_minute` in the long run, by the generic cell rate algorithm: one number kept per client."""

    def __init__(self, per_minute: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._interval = 60 / per_minute
        self._burst = 60 - self._interval
        self._monotonic = monotonic
        self._full_at: dict[str, float] = {}
        self.per_minute = per_minute

    def wait_seconds(self, client: str) -> float:
        """Count a request; return 0 to let it pass, or how long to wait (a refused one is not counted)."""
        now = self._monotonic()
        at = max(self._full_at.get(client, 0.0), now)
        if at - now > self._burst:
            return at - now - self._burst
        if len(self._full_at) >= _CLIENTS_MAX:
            self._forget(now)
        self._full_at[client] = at + self._interval
        return 0.0

    def _forget(self, now: float) -> None:
        self._full_at = {client: at for client, at in self._full_at.items() if at > now}
        # Still full of busy clients: addresses are being made up. Starting over is safer than growing without end.
        if len(self._full_at) >= _CLIENTS_MAX:
            self._full_at.clear()
