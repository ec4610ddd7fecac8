"""Parts that are paused: by a person, or a channel by itself when its webhook is gone."""

from __future__ import annotations

from typing import NamedTuple

from tidings.model.publication import delivery_keys
from tidings.store.db.database import Database

REASON_CHARS_MAX = 500


class PausedPart(NamedTuple):
    """A part that is paused."""

    part: str
    reason: str


class PauseStore:
    """Pauses by part: `pipeline:P`, `source:S`, `channel:C`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pause(self, part: str, reason: str) -> None:
        """Stop a part; of a part that is paused already the reason is renewed."""
        with self._database.transaction() as tx:
            tx.run("pause", part=part, reason=reason[:REASON_CHARS_MAX])

    def resume(self, part: str) -> bool:
        """Start a part again; False where it was not paused."""
        sort, _, name = part.partition(":")
        with self._database.transaction() as tx:
            # Deliveries to a paused channel were postponed by up to hours, and should not wait out that time.
            if sort == "channel":
                tx.run("wake_deliveries", **delivery_keys(name))
            return tx.run("resume", part=part) > 0

    def reasons(self) -> dict[str, str]:
        """Return what is paused, and why."""
        with self._database.reading() as tx:
            return {pause.part: pause.reason for pause in tx.rows(PausedPart, "pauses")}
