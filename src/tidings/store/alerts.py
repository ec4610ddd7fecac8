"""Alerts and low-resolution history, kept beside what they watch but never in its queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidings.store.database import Database


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert that fires: which, since when, and whether people were told."""

    id: int
    name: str
    subject: str
    message: str
    help: str
    value: float
    threshold: float
    fired_at: int
    notified_at: int | None


class AlertStore:
    """One open row per episode, enforced by a unique index; it survives restarts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def firing(self) -> list[Firing]:
        """Return what fires now."""
        with self._database.reading() as tx:
            rows = tx.all("firing_alerts")
        return [Firing(r[8], r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[9]) for r in rows]

    def fire(self, name: str, subject: str, message: str, help_text: str, value: float, threshold: float) -> int:
        """Open an episode, or bring the open one up to date; return its number."""
        with self._database.transaction() as tx:
            row = tx.one(
                "fire_alert",
                name=name,
                subject=subject,
                message=message[:500],
                help=help_text[:500],
                value=float(value),
                threshold=float(threshold),
            )
        assert row is not None
        return int(row[0])

    def clear(self, number: int) -> None:
        """End an episode."""
        with self._database.transaction() as tx:
            tx.run("clear_alert", id=number)

    def take_telling(self, number: int) -> bool:
        """Take the right to tell people of an episode; False where another process has it."""
        with self._database.transaction() as tx:
            return tx.one("take_telling", id=number) is not None

    def give_telling_back(self, number: int) -> None:
        """Let it be told again: the message could not be sent."""
        with self._database.transaction() as tx:
            tx.run("give_telling_back", id=number)

    def put_samples(self, points: Sequence[tuple[str, int, float]]) -> None:
        """Keep measurements: (series, time, value)."""
        with self._database.transaction() as tx:
            tx.many("put_sample", points)
