"""A ledger that forgets with the process: for tests, for trying things out, and where no endpoint is paid."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Final

from tidings.model.clock import Clock, SystemClock, day_of

ENTRIES_MAX: Final = 10_000


@dataclass(slots=True)
class Sheet:
    """One name's money or tokens of one day."""

    spent: int = 0
    reserved: int = 0


@dataclass(slots=True)
class MemoryLedger:
    """Keeps answers and counts in memory; the oldest answers go first."""

    clock: Clock = field(default_factory=SystemClock)
    sheets: dict[tuple[str, str], Sheet] = field(default_factory=lambda: defaultdict(Sheet))
    _answers: OrderedDict[tuple[str, str], tuple[int, bytes]] = field(default_factory=OrderedDict)

    async def get(self, name: str, key: str) -> bytes | None:
        """Return a kept value that is not too old."""
        until_ms, value = self._answers.get((name, key), (0, b""))
        return value if until_ms > self.clock.now_ms() else None

    async def put(self, name: str, key: str, value: bytes, ttl_seconds: int) -> None:
        """Keep a value for a time."""
        self._answers[name, key] = (self.clock.now_ms() + ttl_seconds * 1000, value)
        while len(self._answers) > ENTRIES_MAX:
            self._answers.popitem(last=False)

    async def reserve(self, name: str, amount: int, limit: int) -> bool:
        """Set an amount aside if the day's limit still has room for it."""
        sheet = self.sheet(name)
        if sheet.spent + sheet.reserved + amount > limit:
            return False
        sheet.reserved += amount
        return True

    async def settle(self, name: str, reserved: int, actual: int) -> None:
        """Replace what was set aside by what was spent."""
        sheet = self.sheet(name)
        sheet.reserved = max(0, sheet.reserved - reserved)
        sheet.spent += actual

    async def count(self, name: str, amount: int) -> None:
        """Add to a name's count of the day."""
        self.sheet(name).spent += amount

    def sheet(self, name: str) -> Sheet:
        """Return a name's sheet of today."""
        return self.sheets[name, day_of(self.clock.now_ms())]
