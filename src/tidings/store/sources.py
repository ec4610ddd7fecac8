"""Schedules of the sources: when each is asked, by which process (one at a time, across machines), and its runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from tidings.model.views import RunView
from tidings.store.db.database import Database, Tx
from tidings.store.limits import EVER

FOR_GOOD = ("new", "changed", "unchanged", "rejected", "trimmed", "credits")
"""What is counted of a source for as long as the database lives."""
SUCCESSES = (None, "complete", "incomplete")
_COUNTS = ("found", "new", "changed", "unchanged", "rejected", "pages")


@dataclass(frozen=True, slots=True)
class Turn:
    """The right of one process to ask a source now; its number, the token, changes with every turn that is taken."""

    source: str
    token: int
    failures: int
    run: int


class TakenTurn(NamedTuple):
    """A turn as it was just taken, with the failures in a row before it."""

    token: int
    failures: int


class ScheduleRow(NamedTuple):
    """One source's schedule as stored."""

    source: str
    pipeline: str
    next_at: int
    lease_until: int | None
    failures: int
    last_success_at: int | None
    last_new_at: int | None
    last_error: str | None


class DueSource(NamedTuple):
    """A source that may be asked now."""

    source: str


class Holding(NamedTuple):
    """Since when a source is being asked, and until when the turn lasts; times by the database's clock."""

    since: int | None
    until: int
    now: int


class ScheduleStore:
    """Schedules and run records."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def declare(self, source: str, pipeline: str) -> None:
        """Make a source known; a new one is due at once."""
        with self._database.transaction() as tx:
            tx.put("declare_schedules", [(source, pipeline)])

    def due(self) -> list[str]:
        """Return the sources that are due, not paused and not being asked, the longest waiting first."""
        with self._database.reading() as tx:
            return [row.source for row in tx.rows(DueSource, "due_sources")]

    def claim(self, source: str, owner: str, lease_seconds: float, *, force: bool = False) -> Turn | None:
        """Take the turn and open a run record; None where the source is paused, not due (nor forced), or taken."""
        with self._database.transaction() as tx:
            lease_ms = round(lease_seconds * 1000)
            taken = tx.row(TakenTurn, "claim_schedule", source=source, owner=owner, lease_ms=lease_ms, force=int(force))
            if taken is None:
                return None
            tx.run("close_lost_runs", source=source)
            run = tx.value("open_run", source=source)
        return Turn(source, taken.token, taken.failures, run)

    def beat(self, turn: Turn, lease_seconds: float) -> bool:
        """Prolong a turn; False where it was lost. One that ran out but was not taken still belongs to its holder."""
        with self.keeping(turn, lease_seconds) as is_ours:
            return is_ours

    @contextmanager
    def keeping(self, turn: Turn, lease_seconds: float) -> Iterator[bool]:
        """Prolong a turn in the same transaction that writes what the turn found; False where it was lost."""
        with self._database.transaction() as tx:
            lease_ms = round(lease_seconds * 1000)
            yield tx.run("beat_schedule", source=turn.source, token=turn.token, lease_ms=lease_ms) > 0

    def holding(self, source: str) -> Holding | None:
        """Tell since when a source is being asked, and until when at least; None where it is not."""
        with self._database.reading() as tx:
            return tx.row(Holding, "schedule_holding", source=source)

    def close(self, turn: Turn, run: RunView, *, next_in_seconds: float) -> None:
        """End a turn and its run record."""
        failures = turn.failures + 1 if run.error else 0
        with self._database.transaction() as tx:
            tx.run(
                "close_schedule",
                source=turn.source,
                token=turn.token,
                delay_ms=round(next_in_seconds * 1000),
                failures=failures,
                error=run.error[:500] if run.error else None,
                has_new=int(run.new > 0),
                succeeded=int(run.error is None and run.ended in SUCCESSES),
            )
            _close_run(tx, turn.run, run)

    def give_back(self, turn: Turn, run: RunView) -> None:
        """End a turn that was stopped: neither success nor failure, due again at once."""
        with self._database.transaction() as tx:
            tx.run("give_back_schedule", source=turn.source, token=turn.token)
            _close_run(tx, turn.run, run)

    def claim_between(self, source: str, owner: str, lease_seconds: float) -> Turn | None:
        """Take the turn between two runs; None where the source is paused, or taken."""
        with self._database.transaction() as tx:
            lease_ms = round(lease_seconds * 1000)
            # Forced, because the source is not due between two runs. A pause and another process's turn still hold.
            taken = tx.row(TakenTurn, "claim_schedule", source=source, owner=owner, lease_ms=lease_ms, force=1)
        return None if taken is None else Turn(source, taken.token, taken.failures, 0)

    def close_between(self, turn: Turn, run: RunView) -> None:
        """End a turn between two runs: the schedule stays as it is, and the last run's record gets what was found."""
        with self._database.transaction() as tx:
            tx.run("end_turn", source=turn.source, token=turn.token, has_new=int(run.new > 0))
            if run.pages:
                counts = {name: getattr(run, name) for name in _COUNTS}
                tx.run("add_to_last_run", source=turn.source, **counts)
                _count_for_good(tx, run)

    def check_now(self, source: str) -> bool:
        """Make a source due at once."""
        with self._database.transaction() as tx:
            return tx.run("check_now", source=source) > 0

    def all(self) -> list[ScheduleRow]:
        """Return every schedule."""
        with self._database.reading() as tx:
            return tx.rows(ScheduleRow, "schedules")

    def runs(self, source: str, limit: int = 20) -> list[RunView]:
        """Return a source's latest runs, newest first."""
        with self._database.reading() as tx:
            return tx.rows(RunView, "last_runs", source=source, limit=limit)

    def next_in_ms(self) -> int | None:
        """Return how long until a source is due."""
        with self._database.reading() as tx:
            wait_ms = tx.value("next_schedule")
        return None if wait_ms is None else max(0, wait_ms)


def _close_run(tx: Tx, number: int, run: RunView) -> None:
    values: dict[str, Any] = msgspec.structs.asdict(run)
    for unused in ("source", "started_at", "ended_at"):
        del values[unused]
    tx.run("close_run", id=number, **values)
    _count_for_good(tx, run)


def _count_for_good(tx: Tx, run: RunView) -> None:
    """Add to the counters of a source; records of runs are dropped after a month."""
    for name in FOR_GOOD:
        if amount := getattr(run, name):
            tx.run("count_budget", name=f"{name}:{run.source}", day=EVER, amount=amount)
