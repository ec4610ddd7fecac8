"""Shares: what one pipeline may have of a lane, where its settings say so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tidings.model.contracts import Starts
from tidings.model.pace import UNLIMITED

Starting = Callable[[str, float], AbstractContextManager[Starts]]
"""Opens a shared rate of so many starts a minute: what is started inside is counted with it, for all processes."""


@dataclass(frozen=True, slots=True)
class Share:
    """A pipeline's own bounds in a lane; None leaves it to the lane."""

    concurrency: int | None = None
    batch: int | None = None
    rate_per_minute: float | None = None


WHOLE = Share()


class Shares:
    """What each pipeline has of each lane in this process, and how much of that is in use."""

    def __init__(self, shares: Mapping[str, Mapping[str, Share]], *, now: Callable[[], float] = time.monotonic) -> None:
        self._shares = shares
        self._now = now
        self._under_way: dict[tuple[str, str], int] = {}
        self._held_until: dict[tuple[str, str], float] = {}

    def of(self, pipeline: str, lane: str) -> Share:
        """Return a pipeline's share of a lane."""
        return self._shares.get(pipeline, {}).get(lane, WHOLE)

    def room(self, pipeline: str, lane: str) -> int:
        """Return how many attempts may be started now, as far as this process knows."""
        share = self.of(pipeline, lane)
        places = UNLIMITED if share.concurrency is None else share.concurrency
        return max(0, min(share.batch or UNLIMITED, places - self._under_way.get((pipeline, lane), 0)))

    def begin(self, pipeline: str, lane: str) -> None:
        """Take a place."""
        self._under_way[pipeline, lane] = self._under_way.get((pipeline, lane), 0) + 1

    def end(self, pipeline: str, lane: str) -> None:
        """Give a place back."""
        self._under_way[pipeline, lane] -= 1

    def hold(self, pipeline: str, lane: str, seconds: float) -> None:
        """Leave a pipeline alone for a while: its rate is used up."""
        self._held_until[pipeline, lane] = self._now() + seconds

    def open_to(self, pipelines: Iterable[str], lane: str) -> list[str]:
        """Return the pipelines of which something may be started in a lane now."""
        now = self._now()
        return [name for name in pipelines if self._held_until.get((name, lane), 0.0) <= now and self.room(name, lane)]

    def opens_in(self, pipelines: Iterable[str], lane: str) -> float | None:
        """Return how long until the first of the pipelines that are left alone may be looked at again, if one is."""
        waits = [self._held_until.get((name, lane), 0.0) - self._now() for name in pipelines]
        return min((wait for wait in waits if wait > 0), default=None)
