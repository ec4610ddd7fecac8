"""What can be wrong with a feed as a whole."""

from __future__ import annotations

from tidings.model.errors import Transient


class NotAFeed(Transient):
    """What came back cannot be read as a feed; the message says why. A block page goes away, so time may heal it."""
