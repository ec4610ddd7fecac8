"""Idleness: when a worker that runs until its work is done has nothing left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tidings.process.claims import Claims

LOOK_SECONDS = 0.02
NOTICE_SECONDS_MAX = 0.5
"""How long we wait for a notice before we look whether other work came up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idleness:
    """Looks whether nothing is under way in this process, and nothing due in the store."""

    claims: Claims
    with_log: bool
    is_busy: Callable[[], bool]
    changes: Callable[[], tuple[int, int]]
    """Another value whenever this process began something."""

    async def wait(
        self, wait_for_due_seconds: float, wait_for_notices_seconds: float, on_wait: Callable[[float], None]
    ) -> None:
        """Return when nothing is due now, or within these times."""
        while True:
            while not await self._has_come(wait_for_due_seconds):  # noqa: ASYNC110  # the fact is in the database
                await asyncio.sleep(LOOK_SECONDS)
            seconds = await self.claims.next_notice_seconds() if wait_for_notices_seconds else None
            if seconds is None or seconds > wait_for_notices_seconds:
                return
            on_wait(max(0.0, seconds))
            await asyncio.sleep(min(NOTICE_SECONDS_MAX, max(LOOK_SECONDS, seconds)))

    async def _has_come(self, wait_for_due_seconds: float) -> bool:
        # The answers of the store come one after the other. An item that was leased while the store looked for what is
        # due may be settled and due in its next state before that answer is here: so nothing may have changed
        # meanwhile.
        if self.is_busy():
            return False
        changes = self.changes()
        if await self.claims.is_anything_due(wait_for_due_seconds, with_log=self.with_log):
            return False
        return not self.is_busy() and self.changes() == changes
