"""What processing items again costs: what their last time cost, as the journal tells."""

from __future__ import annotations

from typing import NamedTuple

from tidings.model.item import Step
from tidings.model.workflow import Workflow
from tidings.store.db.database import Tx
from tidings.store.items import journal

LIFE_ROWS_MAX = 10_000


class Price(NamedTuple):
    """Calls to an AI endpoint, their tokens, and money in millionths."""

    calls: int = 0
    tokens: int = 0
    cost_micros: int = 0

    def plus(self, other: Price) -> Price:
        """Add two prices."""
        return Price(self.calls + other.calls, self.tokens + other.tokens, self.cost_micros + other.cost_micros)


def price_of(tx: Tx, item: int, workflow: Workflow) -> Price:
    """Return what the last time cost that an item went through its workflow; only an endpoint's answers cost."""
    if all(transition.lane != "ai" for transition in workflow.transitions):
        return Price()
    last: dict[str, Step] = {}
    for row in journal.life(tx, item, LIFE_ROWS_MAX):
        last.update({step.transition: step for step in row.steps if step.tokens})
    steps = last.values()
    return Price(len(last), sum(step.tokens for step in steps), sum(step.cost_micros for step in steps))
