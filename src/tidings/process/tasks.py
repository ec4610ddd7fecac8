"""Tasks: what a process has under way in its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tidings.model.endings import describe
from tidings.watch.logs import Seldom


class Tasks:
    """Starts tasks, keeps them alive, and tells of those that failed."""

    def __init__(self) -> None:
        self.started = 0
        self._running: set[asyncio.Task[None]] = set()
        self._seldom = Seldom()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin in the background."""
        self.started += 1
        task = asyncio.create_task(work)
        self._running.add(task)
        # The set keeps the task alive: asyncio itself holds only a weak reference.
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Nothing was settled, so the leases run out and are swept: that costs each item an attempt, not the worker
            # its life.
            self._seldom.event("attempt lost", error=describe(error))

    async def end_within(self, seconds: float) -> None:
        """Wait for all that are under way now; cancel what takes longer."""
        await end_within(seconds, set(self._running))


async def end_within(seconds: float, tasks: set[asyncio.Task[None]]) -> None:
    """Wait for tasks; cancel what takes longer."""
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
