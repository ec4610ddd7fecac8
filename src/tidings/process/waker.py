"""Wakes the loops of this process at once when there is work; polling remains the ground they stand on."""

from __future__ import annotations

import asyncio
import threading


class Waker:
    """Named alarms that any thread may ring."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarms: dict[str, asyncio.Event] = {}
        self._lock = threading.Lock()

    async def wait(self, name: str, timeout_seconds: float) -> None:
        """Sleep until the alarm rings or time is up."""
        self._loop = asyncio.get_running_loop()
        alarm = self._alarms.setdefault(name, asyncio.Event())
        try:
            async with asyncio.timeout(timeout_seconds):
                await alarm.wait()
        except TimeoutError:
            pass
        # Cleared after the wait: what rings while the caller works lets the next wait end at once.
        alarm.clear()

    def wake(self, name: str) -> None:
        """Ring one alarm."""
        self._ring([name])

    def wake_all(self) -> None:
        """Ring every alarm."""
        self._ring(list(self._alarms))

    def _ring(self, names: list[str]) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        # Store threads ring too, and an asyncio.Event may only be set on its own loop.
        loop.call_soon_threadsafe(self._set, names)

    def _set(self, names: list[str]) -> None:
        for name in names:
            self._alarms.setdefault(name, asyncio.Event()).set()
