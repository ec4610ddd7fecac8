"""What processors, sources and channels see of the store: the ledger contract, carried out by an executor."""

from __future__ import annotations

from tidings.model.contracts import Executor, Permit
from tidings.store.caches import CacheStore
from tidings.store.db.database import Database
from tidings.store.limits import BudgetStore, LimiterStore
from tidings.store.pauses import PauseStore


class StoreLedger:
    """Caches, budgets, limiters and pauses for coroutines; each call goes through the executor's threads."""

    def __init__(self, database: Database, executor: Executor) -> None:
        self._executor = executor
        self._caches = CacheStore(database)
        self._budgets = BudgetStore(database)
        self._limiters = LimiterStore(database)
        self._pauses = PauseStore(database)

    async def get(self, name: str, key: str) -> bytes | None:
        """Return a cached value."""
        return await self._executor.read(self._caches.get, name, key)

    async def put(self, name: str, key: str, value: bytes, ttl_seconds: float) -> None:
        """Keep a value for a time."""
        await self._executor.write(self._caches.put, name, key, value, ttl_seconds)

    async def reserve(self, name: str, amount: int, limit: int) -> bool:
        """Set aside part of today's budget; False where it would not suffice."""
        return await self._executor.write(self._budgets.reserve, name, amount, limit)

    async def settle(self, name: str, reserved: int, actual: int) -> None:
        """Replace a reservation by what was really spent."""
        await self._executor.write(self._budgets.settle, name, reserved, actual)

    async def count(self, name: str, amount: int) -> None:
        """Count without a limit."""
        await self._executor.write(self._budgets.count, name, amount)

    async def enter(self, name: str, *, limit: int, per_seconds: float, hold_seconds: float) -> Permit:
        """Ask a limiter for the one place inside."""
        return await self._executor.write(
            self._limiters.enter, name, limit=limit, per_seconds=per_seconds, hold_seconds=hold_seconds
        )

    async def leave(self, name: str, token: int, *, not_before_ms: int = 0) -> None:
        """Give a limiter's place back."""
        await self._executor.write(self._limiters.leave, name, token, not_before_ms=not_before_ms)

    async def pause(self, part: str, reason: str) -> None:
        """Stop a part."""
        await self._executor.write(self._pauses.pause, part, reason)

    async def pauses(self) -> dict[str, str]:
        """Return what is paused, and why."""
        return await self._executor.read(self._pauses.reasons)
