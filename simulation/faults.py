"""What may go wrong, and how often: each seed draws which kinds of fault it knows, and how likely each is."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

Fate = Literal["commits", "undone", "reply lost", "dies before", "dies after"]
"""How a commit ends: done; not done; done unheard; and twice with the death of the process that asked."""

AT_CALLS = ("undone", "reply lost", "dies before", "dies after", "slow")
"""Drawn as the seed runs."""
PLANNED = ("stall", "cut", "crash", "restart", "jump", "full")
"""Events of the seed's plan."""
KINDS = AT_CALLS + PLANNED


@dataclass
class Faults:
    """Draws faults while they are allowed. A seed that knows few kinds finds what many kinds together would hide."""

    rng: random.Random
    kinds: frozenset[str]
    rate: float
    """How likely each kind is at a commit."""
    are_on: bool = True
    counts: dict[str, int] = field(default_factory=dict)

    def fate(self) -> Fate:
        """Draw how the next commit ends."""
        if not self.are_on or self.rng.random() > 4 * self.rate:
            return "commits"
        chosen: Fate = self.rng.choice(("undone", "reply lost", "dies before", "dies after"))
        if chosen not in self.kinds:
            return "commits"
        self.count(chosen)
        return chosen

    def latency(self) -> float:
        """Draw how long a call, or its reply, is on its way."""
        drawn = self.rng.random()
        if "slow" in self.kinds and self.are_on and drawn < self.rate:
            self.count("slow")
            return self.rng.uniform(1.0, 40.0)
        return 0.0 if drawn < 0.6 else drawn * 0.02

    def stall(self) -> float:
        """Draw for how long the process that makes a call stops with all it does: hardly ever, but then anywhere."""
        if "stall" not in self.kinds or not self.are_on or self.rng.random() > self.rate:
            return 0.0
        self.count("stall")
        return self.rng.uniform(1.0, 40.0)

    def count(self, kind: str) -> None:
        """Count a fault."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
