"""Ids that could not be read: how often each was tried, when it is asked for again, and when it is given up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from tidings.model.item import Rejected

TRIES = 10
"""After so many an id is given up; with doubling waits that is a little more than four hours after the first."""
WAIT_SECONDS_FIRST = 30
WAIT_SECONDS_MAX = 24 * 3600
WAITING_MAX = 5_000
"""While so many ids wait for another try, no new ones are read: none of them may be lost."""
GIVEN_UP_MAX = 5_000
REASON_LENGTH_MAX = 100


class Unread(msgspec.Struct, array_like=True):
    """What is known of one id that could not be read. Written as an array: the cursor may hold thousands."""

    tries: int
    due_ms: int
    """Not asked for before, by whatever way we come across it."""
    reason: str

    @property
    def is_given_up(self) -> bool:
        """Tell whether it is no longer asked for by itself."""
        return self.tries >= TRIES


@dataclass(slots=True)
class UnreadIds:
    """The ids that could not be read, as one run sees them; changes go into the cursor's entries."""

    entries: dict[str, Unread]
    now_ms: int

    def count_try(self, number: int, reason: str) -> list[Rejected]:
        """Count a failed try and set the next one; report an id that is given up, and those dropped in its place."""
        entry = self.entries.setdefault(str(number), Unread(0, 0, ""))
        entry.tries += 1
        entry.reason = reason[:REASON_LENGTH_MAX]
        wait_seconds = min(WAIT_SECONDS_MAX, WAIT_SECONDS_FIRST * 2 ** (entry.tries - 1))
        entry.due_ms = self.now_ms + wait_seconds * 1000
        if entry.tries != TRIES:
            return []
        return [Rejected(number, f"item {number}: given up after {TRIES} tries: {reason}"), *self._drop_oldest()]

    def forget(self, numbers: Iterable[int]) -> None:
        """Take ids off the list: they were answered."""
        for number in numbers:
            self.entries.pop(str(number), None)

    def restart(self) -> None:
        """Give every id all its tries again, the first of them now."""
        for entry in self.entries.values():
            entry.tries, entry.due_ms = 0, self.now_ms

    def due(self, limit: int) -> list[int]:
        """Return ids whose next try has come, those that wait longest first."""
        due = [
            (entry.due_ms, int(number))
            for number, entry in self.entries.items()
            if not entry.is_given_up and entry.due_ms <= self.now_ms
        ]
        return [number for _, number in sorted(due)[:limit]]

    def is_early(self, number: int) -> bool:
        """Tell whether an id must wait for its next try, even if a list or `updates` names it."""
        entry = self.entries.get(str(number))
        return entry is not None and entry.due_ms > self.now_ms

    def between(self, first: int, last: int) -> list[int]:
        """Return the ids of a range."""
        return sorted(number for number in map(int, self.entries) if first <= number <= last)

    def given_up(self) -> list[int]:
        """Return the ids that are no longer asked for by themselves."""
        return sorted(int(number) for number, entry in self.entries.items() if entry.is_given_up)

    def has_room(self, count: int) -> bool:
        """Tell whether so many more could be noted."""
        return len(self.entries) - len(self.given_up()) + count <= WAITING_MAX

    def _drop_oldest(self) -> list[Rejected]:
        dropped = self.given_up()[:-GIVEN_UP_MAX]
        self.forget(dropped)
        return [Rejected(number, f"item {number}: dropped, {GIVEN_UP_MAX} newer ids are unread") for number in dropped]
