"""The database's clock: it follows the loop's virtual time, and can be made to jump."""

from __future__ import annotations

from simulation.loop import VirtualLoop

START_MS = 1_800_000_000_000


class VirtualClock:
    """UTC milliseconds. The loop's own time never jumps: it is every worker's monotonic clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._offset_ms = START_MS

    def now_ms(self) -> int:
        """Return the time."""
        return self._offset_ms + int(self._loop.now * 1000 + 1e-3)

    def jump(self, seconds: float) -> None:
        """Move the clock, forward or back, while everyone else's stands still."""
        self._offset_ms += round(seconds * 1000)
