"""What a keyed provider costs: counted request by request, and kept under a daily budget."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tidings.model.clock import DAY_MS
from tidings.model.contracts import Kit
from tidings.model.errors import SlowDown


@dataclass(slots=True)
class Charge:
    """One request's cost: one credit, unless the provider turns out not to have taken it."""

    spent: int = 1


@asynccontextmanager
async def one_credit(kit: Kit, source: str, per_day: int) -> AsyncIterator[Charge]:
    """Reserve a credit of the day's budget for one request, and settle what it really cost."""
    budget = f"credits:{source}"
    if not await kit.ledger.reserve(budget, 1, per_day):
        raise SlowDown(
            f"{source} has used its budget of {per_day} credits for today; the rest comes tomorrow",
            retry_after_seconds=seconds_until_tomorrow(kit.clock.now_ms()),
        )
    charge = Charge()
    try:
        yield charge
    finally:
        await kit.ledger.settle(budget, 1, charge.spent)


def seconds_until_tomorrow(now_ms: int) -> float:
    """Return how long the UTC day still lasts: providers' days end with it."""
    return (DAY_MS - now_ms % DAY_MS) / 1000
