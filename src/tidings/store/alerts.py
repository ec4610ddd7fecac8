"""Alerts and the low-resolution history behind the charts; stored beside the items, never as items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidings.store.db.database import Database


class Firing(NamedTuple):
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
            return tx.rows(Firing, "open_episodes")

    def fire(self, name: str, subject: str, message: str, help_text: str, value: float, threshold: float) -> int:
        """Open an episode, or bring the open one up to date; return its number."""
        with self._database.transaction() as tx:
            number = tx.value(
                "fire_alert",
                name=name,
                subject=subject,
                message=message[:500],
                help=help_text[:500],
                value=float(value),
                threshold=float(threshold),
            )
        return int(number)

    def clear(self, number: int) -> None:
        """End an episode."""
        with self._database.transaction() as tx:
            tx.run("clear_alert", id=number)

    def take_telling(self, number: int) -> bool:
        """Take the right to tell people of an episode; False where another process has it."""
        with self._database.transaction() as tx:
            return tx.run("take_telling", id=number) > 0

    def give_telling_back(self, number: int) -> None:
        """Let it be told again: the message could not be sent."""
        with self._database.transaction() as tx:
            tx.run("give_telling_back", id=number)

    def put_samples(self, points: Sequence[tuple[str, int, float]]) -> None:
        """Keep measurements: (series, time, value)."""
        with self._database.transaction() as tx:
            tx.put("put_samples", points)
