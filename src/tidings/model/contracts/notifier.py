"""How notices reach a channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tidings.model.publication import Notice


@dataclass(frozen=True, slots=True)
class Permit:
    """A limiter's answer: go (`wait_ms` is 0, with a token to give back), or come back later."""

    wait_ms: int
    token: int = 0


@dataclass(slots=True)
class Starts:
    """A shared rate while something is started by it."""

    free: int
    """How many may be started now."""
    wait_ms: int
    """How long until one may, where none may now."""
    made: int = 0
    """How many were; to be set by the one who starts them."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of a sent notice."""

    message_id: str | None
    answer: str
    """What the service said, for the operator; no secrets."""
    not_before_ms: int = 0
    """How long the channel asks us to wait before the next one."""


class Notifier(Protocol):
    """Carries notices to one channel."""

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Send, or raise SlowDown, Ambiguous, Transient, Permanent or Misconfigured (the channel is to be paused)."""
        ...

    def render(self, notice: Notice, delivery_id: str) -> Any:
        """Return what would be sent, without any secret."""
        ...
