"""Who asks which source when: one owner per source, across machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from tidings.model.views import RunView
from tidings.store.database import Database, Tx


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to ask a source now."""

    source: str
    token: int
    failures: int
    run: int


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """One source's schedule as stored."""

    source: str
    pipeline: str
    next_at: int
    lease_until: int | None
    failures: int
    last_success_at: int | None
    last_new_at: int | None
    last_error: str | None


class Holding(NamedTuple):
    """Who asks a source now, as far as its turn tells; times by the database's clock."""

    since: int | None
    until: int
    now: int


class ScheduleStore:
    """Schedules and run records."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def declare(self, source: str, pipeline: str) -> None:
        """Make a source known; due at once the first time."""
        with self._database.transaction() as tx:
            tx.run("declare_schedule", source=source, pipeline=pipeline)

    def claim(self, source: str, owner: str, lease_seconds: float, *, force: bool = False) -> Turn | None:
        """Take the turn if the source is due (or forced), not paused, and nobody else has it; opens a run record."""
        with self._database.transaction() as tx:
            row = tx.one(
                "claim_schedule", source=source, owner=owner, lease_ms=round(lease_seconds * 1000), force=int(force)
            )
            if row is None:
                return None
            run = tx.one("open_run", source=source)
            assert run is not None
        return Turn(source, row[0], row[1], run[0])

    def beat(self, turn: Turn, lease_seconds: float) -> bool:
        """Prolong a turn; False where it was lost. One that ran out and that nobody took is its holder's yet."""
        with self.keeping(turn, lease_seconds) as is_ours:
            return is_ours

    @contextmanager
    def keeping(self, turn: Turn, lease_seconds: float) -> Iterator[bool]:
        """Prolong a turn in the transaction of what is written by its right; False where it was lost."""
        with self._database.transaction() as tx:
            asked = {"source": turn.source, "token": turn.token, "lease_ms": round(lease_seconds * 1000)}
            yield tx.one("beat_schedule", **asked) is not None

    def holding(self, source: str) -> Holding | None:
        """Tell since when a source is being asked, and until when at least; None where it is not."""
        with self._database.reading() as tx:
            row = tx.one("schedule_holding", source=source)
        return None if row is None else Holding(*row)

    def close(self, turn: Turn, run: RunView, *, next_in_seconds: float) -> None:
        """End a turn and its run record."""
        failures = turn.failures + 1 if run.error else 0
        with self._database.transaction() as tx:
            tx.one(
                "close_schedule",
                source=turn.source,
                token=turn.token,
                delay_ms=round(next_in_seconds * 1000),
                failures=failures,
                error=run.error[:500] if run.error else None,
                has_new=int(run.new > 0),
            )
            _close_run(tx, turn.run, run)

    def give_back(self, turn: Turn, run: RunView) -> None:
        """End a turn that was stopped: neither success nor failure, due again at once."""
        with self._database.transaction() as tx:
            tx.run("give_back_schedule", source=turn.source, token=turn.token)
            _close_run(tx, turn.run, run)

    def check_now(self, source: str) -> bool:
        """Make a source due at once."""
        with self._database.transaction() as tx:
            return tx.one("check_now", source=source) is not None

    def all(self) -> list[ScheduleRow]:
        """Return every schedule."""
        with self._database.reading() as tx:
            return [ScheduleRow(*row) for row in tx.all("schedules")]

    def runs(self, source: str, limit: int = 20) -> list[RunView]:
        """Return a source's latest runs, newest first."""
        with self._database.reading() as tx:
            rows = tx.all("last_runs", source=source, limit=limit)
        names = RunView.__struct_fields__
        return [RunView(**dict(zip(names, row, strict=True))) for row in rows]

    def next_in_ms(self) -> int | None:
        """Return how long until a source is due."""
        with self._database.reading() as tx:
            row = tx.one("next_schedule")
        return None if row is None or row[0] is None else max(0, int(row[0]))


def _close_run(tx: Tx, number: int, run: RunView) -> None:
    values: dict[str, Any] = msgspec.structs.asdict(run)
    for unused in ("source", "started_at", "ended_at"):
        del values[unused]
    tx.run("close_run", id=number, **values)
