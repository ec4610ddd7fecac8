"""One line per measured thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import process_time
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Row:
    """A score, what to reach, and the baselines it is to be read beside."""

    what: str
    score: float
    unit: str
    reach: float
    is_ceiling: bool = False
    """The score is to stay below, not above."""
    beside: str = ""

    @property
    def is_reached(self) -> bool:
        """Tell whether the score is good enough."""
        return self.score <= self.reach if self.is_ceiling else self.score >= self.reach


def timed(work: Callable[[T], R], things: Iterable[T]) -> tuple[list[R], float]:
    """Do the work on each thing; return the results and the CPU milliseconds each took on average."""
    things = list(things)
    started = process_time()
    results = [work(thing) for thing in things]
    return results, (process_time() - started) * 1000 / max(1, len(things))


def show(rows: Iterable[Row]) -> None:
    """Print the rows in columns."""
    for row in rows:
        mark = "ok  " if row.is_reached else "MISS"
        bound = "at most" if row.is_ceiling else "at least"
        print(f"{mark} {row.what:<44}{row.score:>9.3f} {row.unit:<10} {bound} {row.reach:<8g} {row.beside}")
