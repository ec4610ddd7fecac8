"""What happened, in order: its digest proves that a seed repeats, its end tells how a seed failed."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b

from simulation.loop import VirtualLoop

KEPT = 400


class Trace:
    """A running digest of all events, and the last of them in words."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._digest = blake2b(digest_size=16)
        self.last: deque[str] = deque(maxlen=KEPT)
        self.count = 0

    def add(self, who: str, what: str) -> None:
        """Note an event."""
        line = f"{self._loop.now:10.3f} {who:<9} {what}"
        self._digest.update(line.encode())
        self.last.append(line)
        self.count += 1

    @property
    def digest(self) -> str:
        """The same for the same seed, in every process."""
        return self._digest.hexdigest()
