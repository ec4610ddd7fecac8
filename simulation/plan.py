"""What a seed will do: who offers what when, what operators do, and which faults come at which time."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, NamedTuple

from simulation.faults import KINDS, PLANNED
from simulation.pipelines import FATES

SECONDS = 30.0
"""How long people and faults are at it, by the loop's time."""
PROCESSES = ("alpha", "beta")
JUMPS = (
    3.0,
    8.0,
    25.0,
    25.0,
    25.0,
    120.0,
    120.0,
    4_000.0,
    90_000.0,
    11 * 86_400.0,
    25 * 86_400.0,
    -5.0,
    -90.0,
    -90_000.0,
)
OPERATIONS = ("fail", "retry", "again", "revive", "replay", "purge", "pause", "resume", "check now", "tidy")


class Event(NamedTuple):
    """Something that happens at a time."""

    at: float
    what: str
    details: tuple[Any, ...]


@dataclass(frozen=True)
class Plan:
    """All that is decided before anything runs; the same for both databases."""

    events: tuple[Event, ...]
    kinds: frozenset[str]
    rate: float
    trouble: float
    is_real: bool
    """The notes are items of the real Hacker News pipeline."""
    size: int


def draw(rng: random.Random) -> Plan:
    """Draw a plan."""
    size = rng.choice((8, 16, 16, 30))
    kinds = frozenset(kind for kind in KINDS if rng.random() < 0.5)
    events = [*_offers(rng, size), *_operations(rng, size // 4), *_faults(rng, kinds)]
    return Plan(
        events=tuple(sorted(events, key=lambda event: event.at)),
        kinds=kinds,
        rate=rng.choice((0.002, 0.006, 0.015)),
        trouble=rng.choice((0.0, 0.05, 0.2)),
        is_real=rng.random() < 0.25,
        size=size,
    )


def _offers(rng: random.Random, size: int) -> list[Event]:
    """Copies come alone and in batches, again, and soon after other copies of the same thing."""
    keys = max(2, size // 3)
    return [_offer(rng, keys) for _ in range(size)]


def _offer(rng: random.Random, keys: int) -> Event:
    what = rng.choice(("upload", "upload", "upload", "list"))
    copies = [(_kind(rng), rng.randrange(keys), *_fate(rng), rng.randrange(3)) for _ in range(rng.choice((1, 1, 2, 4)))]
    return Event(rng.uniform(0, SECONDS), what, (tuple(copies), rng.random() < 0.2))


def _kind(rng: random.Random) -> str:
    return "note" if rng.random() < 0.6 else "page"


def _fate(rng: random.Random) -> tuple[str, int]:
    fate = rng.choice(FATES)
    return fate, rng.randint(1, 2) if fate in ("fail", "break") else 0


def _operations(rng: random.Random, count: int) -> list[Event]:
    return [Event(rng.uniform(2, SECONDS), rng.choice(OPERATIONS), (rng.random(),)) for _ in range(count)]


def _faults(rng: random.Random, kinds: frozenset[str]) -> list[Event]:
    events = []
    for kind in sorted(kinds & set(PLANNED)):
        for _ in range(rng.choice((1, 2, 4))):
            seconds = rng.choice(JUMPS) if kind == "jump" else rng.uniform(1, 40 if kind == "stall" else 12)
            events.append(Event(rng.uniform(1, SECONDS), kind, (rng.choice(PROCESSES), seconds)))
    return events
