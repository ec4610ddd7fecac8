"""Notices that another process has written, so that this one's loops need not wait for their next look."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from tidings.model.errors import StoreUnavailable
from tidings.store.db.database import Database
from tidings.store.db.executor import StoreExecutor

HINT_SECONDS = 0.25


class Hints:
    """A hint beside polling, never more: one that is lost costs a little time and nothing else."""

    def __init__(self, database: Database, executor: StoreExecutor, wake: Callable[[], None]) -> None:
        self._database = database
        self._executor = executor
        self._wake = wake
        self._version: int | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Wake this process's loops whenever another process has written."""
        look = self._wait_for_notification if self._database.carries_hints else self._look_at_version
        while not stop.is_set():
            try:
                if await look():
                    continue
            except StoreUnavailable:
                pass  # The other loops report it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HINT_SECONDS):
                    await stop.wait()

    async def _look_at_version(self) -> bool:
        """SQLite tells only when asked: its `data_version` changes with every commit of another process."""
        version = await self._executor.read(self._database.changes)
        if self._version is not None and version != self._version:
            self._wake()
        self._version = version
        return False

    async def _wait_for_notification(self) -> bool:
        """PostgreSQL sends a NOTIFY; after one, look for the next without a pause."""
        if not await self._executor.read(self._database.wait_for_hint, HINT_SECONDS):
            return False
        self._wake()
        return True
