"""A run of the processor: what one process did for one pipeline, from the first claim until nothing is left to do."""

from __future__ import annotations

from dataclasses import dataclass

RUN_SECONDS_MAX = 60.0
"""A worker that never runs out of work still tells of it once a minute."""
IDLE_SECONDS = 2.0
"""So long without anything to do ends a run. Shorter, every phase of an article would be a run of its own."""
STALE = "stale"
TO_THE_END = ("retried", "postponed", "parked")


@dataclass(slots=True)
class WorkRun:
    """What was done so far."""

    pipeline: str
    started: float
    """By the process's own stopwatch, as is `active`."""
    active: float = float("-inf")
    loaded: int = 0
    """Items that were claimed, and findings that were run before their birth."""
    processed: int = 0
    """Attempts that were made and written."""
    removed: int = 0
    """Those of them after which the item has no way to go: it is complete, rejected, dead or waits for a person."""
    moved_to_end: int = 0
    """Those after which it is tried again later."""
    under_way: int = 0

    def load(self, items: int, now: float) -> None:
        """Count what was claimed."""
        self.loaded += items
        self.under_way += items
        self.active = now

    def settle(self, ended: str, standing: str, items: int, now: float) -> None:
        """Count attempts that ended alike; those whose right was lost (`stale`) wrote nothing."""
        self.under_way -= items
        self.active = now
        if ended != STALE:
            self.processed += items
            self.removed += items * (standing not in ("open", "parked"))
            self.moved_to_end += items * (ended in TO_THE_END)

    def is_over(self, now: float) -> bool:
        """Tell whether there was nothing to do for a while, or the run has lasted for its minute."""
        is_idle = self.under_way <= 0 and now - self.active >= IDLE_SECONDS
        return is_idle or now - self.started >= RUN_SECONDS_MAX
