"""Grouping into stories with a full window: the cost of an item must not grow with how many there are.

The titles are drawn from words as frequent as those of a language (Zipf), one in three tells an event told before. The
floor is the splitting of the title into terms.
"""

from __future__ import annotations

import random
from itertools import accumulate
from time import process_time
from typing import Any

from tidings.follow.stories.grouping import WINDOW_MS, Grouping, StoryItem
from tidings.follow.stories.terms import weighed_terms

ITEMS, QUICK_ITEMS = 100_000, 20_000
WORDS = 40_000
FIRST_TIME = 1_700_000_000_000


def run(quick: bool) -> list[dict[str, Any]]:
    """Fill the window; measure its first and its last tenth in CPU time."""
    count = QUICK_ITEMS if quick else ITEMS
    told = titles(count)
    grouping, step = Grouping(), count // 10
    costs = [_cost(grouping, told, start, step) for start in range(0, count, step)]
    started = process_time()
    for title in told[:step]:
        weighed_terms(title, "", "")
    floor = (process_time() - started) * 1000 / step
    return [
        _row(f"stories: an item in a window of {step:,}", costs[0], floor),
        _row(f"stories: an item in a window of {count:,}", costs[-1], floor),
    ]


def _cost(grouping: Grouping, told: list[str], start: int, step: int) -> float:
    apart = WINDOW_MS // len(told)
    started = process_time()
    for n in range(start, start + step):
        grouping.place(StoryItem(n + 1, FIRST_TIME + n * apart, told[n]))
    return (process_time() - started) * 1000 / step


def titles(count: int) -> list[str]:
    """Draw titles."""
    draw = random.Random(11)
    words = [f"w{n}" for n in range(WORDS)]
    shares = list(accumulate(1 / (n + 10) for n in range(WORDS)))
    found: list[str] = []
    for n in range(count):
        fresh = draw.choices(words, cum_weights=shares, k=9)
        if n % 3 == 2:
            fresh = [*found[draw.randrange(max(0, n - 2_000), n)].split()[:6], *fresh[:3]]
        found.append(" ".join(fresh))
    return found


def _row(what: str, value: float, floor: float) -> dict[str, Any]:
    return {"what": what, "value": value, "unit": "CPU ms", "floor": floor, "ratio": value / floor}
