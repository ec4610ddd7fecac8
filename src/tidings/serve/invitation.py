"""A link that signs one browser in, once: printed in the terminal that started a server on loopback."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable

INVITED_SECONDS = 15 * 60


class Invitation:
    """A key that ends with its first use, or with its time."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.key = secrets.token_urlsafe(32)
        self._monotonic = monotonic
        self._ends_at: float | None = monotonic() + INVITED_SECONDS

    def is_open(self, key: str) -> bool:
        """Tell whether a key may still be used."""
        is_in_time = self._ends_at is not None and self._monotonic() < self._ends_at
        return is_in_time and hmac.compare_digest(key.encode(), self.key.encode())

    def take(self, key: str) -> bool:
        """Use the key up; tell whether that was allowed."""
        is_allowed = self.is_open(key)
        if is_allowed:
            self._ends_at = None
        return is_allowed
