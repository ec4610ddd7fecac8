"""E2: whoever reads the stream after every commit has just what stands on the shelf, and hears nothing twice."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulation.oracle.knowledge import Knowledge
from simulation.oracle.snapshot import Snapshot
from tidings.model.changes import ChangePage, CursorGone
from tidings.store.changes import ChangeStore
from tidings.store.db.database import Database

BATCH = 7


@dataclass
class Copied:
    """One pipeline's shelf, as its stream tells it."""

    cursor: str | None = None
    version: int = 0
    values: dict[str, bytes] = field(default_factory=dict)


class StreamReader:
    """Copies every shelf by its stream."""

    def __init__(self, known: Knowledge, database: Database) -> None:
        self._known = known
        self._stream = ChangeStore(database)
        self._copies: dict[str, Copied] = {}

    def check(self, before: Snapshot, now: Snapshot) -> None:
        """Follow each pipeline whose shelf changed with the last commit."""
        if now.cards == before.cards:
            return
        for name in {card.pipeline for card in (*now.cards.values(), *before.cards.values())}:
            self._follow(name)
            values = {card.key: card.value for card in now.cards.values() if card.pipeline == name}
            told = self._copies[name].values
            if told != values:
                missing = sorted(key for key in values if told.get(key) != values[key])
                ghosts = sorted(key for key in told if key not in values)
                self._known.break_rule("E2", f"the stream of {name} did not tell of {missing}, nor that {ghosts} left")

    def _follow(self, pipeline: str) -> None:
        copied = self._copies.setdefault(pipeline, Copied())
        is_full = True
        while is_full:
            try:
                page = self._stream.changes(pipeline, copied.cursor, BATCH)
            except CursorGone:
                copied = self._copies[pipeline] = Copied()
                continue
            self._take(pipeline, copied, page)
            is_full = page.is_full

    def _take(self, pipeline: str, copied: Copied, page: ChangePage) -> None:
        for change in page.changes:
            if change.version <= copied.version:
                self._known.break_rule("E2", f"{pipeline} told {change.key} at {change.version} after {copied.version}")
            copied.version = change.version
            if change.value is None:
                copied.values.pop(change.key, None)
            else:
                copied.values[change.key] = change.value
        copied.cursor = page.position
