"""The stand-in's rates: the one its headers tell of, and the hidden one of the channel."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

BUCKET = "c0ffee5e1f1e5caffe"


@dataclass(slots=True)
class DiscordRates:
    """The limits of one webhook and its channel, by their clock."""

    per_webhook: int = 5
    webhook_seconds: float = 2.0
    per_channel: int = 30
    """The hidden one: no header speaks of it."""
    channel_seconds: float = 60.0
    webhook_times: deque[float] = field(default_factory=deque)
    channel_times: deque[float] = field(default_factory=deque)

    def admit(self, now: float) -> tuple[float, str]:
        """Count a request and return 0, or return how long to wait and for whose sake."""
        _forget(self.webhook_times, now - self.webhook_seconds)
        _forget(self.channel_times, now - self.channel_seconds)
        if len(self.webhook_times) >= self.per_webhook:
            return self.webhook_times[0] + self.webhook_seconds - now, "user"
        if len(self.channel_times) >= self.per_channel:
            return self.channel_times[0] + self.channel_seconds - now, "shared"
        self.webhook_times.append(now)
        self.channel_times.append(now)
        return 0.0, ""

    def headers(self, now: float) -> dict[str, str]:
        """Return what Discord tells of the visible limit."""
        _forget(self.webhook_times, now - self.webhook_seconds)
        used = len(self.webhook_times)
        reset = self.webhook_times[0] + self.webhook_seconds - now if used else self.webhook_seconds
        return {
            "X-RateLimit-Limit": str(self.per_webhook),
            "X-RateLimit-Remaining": str(max(0, self.per_webhook - used)),
            "X-RateLimit-Reset": f"{now + reset:.3f}",
            "X-RateLimit-Reset-After": f"{reset:.3f}",
            "X-RateLimit-Bucket": BUCKET,
        }


def _forget(times: deque[float], before: float) -> None:
    while times and times[0] <= before:
        times.popleft()
