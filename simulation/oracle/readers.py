"""E, F: what readers see, and what is spent."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.support.own_sql import own_sql

from simulation.oracle.knowledge import Knowledge
from simulation.oracle.snapshot import Snapshot
from simulation.pipelines import BUDGET, BUDGET_LIMIT, INDEX_DAYS, PAGES
from tidings.model.clock import DAY_MS
from tidings.store.db.database import Database
from tidings.store.upkeep.rebuild import Rebuilder

SHOWN = (
    "SELECT pipeline, key, collection, sort, value FROM shelf WHERE id > 0 ORDER BY id",
    "SELECT pipeline, key, value FROM shelf WHERE id < 0 AND expires_at > :now ORDER BY pipeline, key",
)


def check(known: Knowledge, before: Snapshot, now: Snapshot) -> None:
    """Compare two snapshots of neighboring commits."""
    _cards(known, before, now)
    _index(known, now)
    for budget in now.budgets:
        if budget.name == BUDGET and budget.spent + budget.reserved > BUDGET_LIMIT:
            known.break_rule("F1", f"{budget} is more than {BUDGET_LIMIT}")


def _cards(known: Knowledge, before: Snapshot, now: Snapshot) -> None:
    """E3, A11: a card's revision never goes back, and what readers see of an accepted item changes with its journal."""
    written = {row.item for row in now.new_journal}
    for number, card in now.cards.items():
        was = before.cards.get(number)
        if was is None or was == card or number < 0:
            continue
        if card.revision < was.revision:
            known.break_rule("E3", f"the card {card.key} went back from revision {was.revision} to {card.revision}")
        item = now.items.get(number)
        is_same = (was.key, was.sort, was.value) == (card.key, card.sort, card.value)
        if item is not None and item.accepted_revision is not None and number not in written and not is_same:
            known.break_rule("A11", f"the card {card.key} of {item} changed without an attempt")


def _index(known: Knowledge, now: Snapshot) -> None:
    """E1: each id in the id index has a card."""
    cards = {card.key for card in now.cards.values() if card.pipeline == PAGES}
    index = next((c for c in now.cards.values() if c.key == "index:pages"), None)
    if index is None or (index.expires_at or 0) <= now.now_ms:
        return
    ids = msgspec.json.decode(index.value)["ids"]
    if bare := [each for each in ids if f"page:{each}" not in cards]:
        known.break_rule("E1", f"in the id index without a card: {bare}")


def check_rebuild(known: Knowledge, database: Database, rebuilder: Rebuilder, now_ms: int) -> None:
    """E4: at rest, rebuilding gives the same cards."""
    live = _shown(database, now_ms)
    rebuilder.rebuild()
    again = _shown(database, now_ms)
    # An id that grew too old for the index does not come back with a newer revision, but with a rebuild it does.
    kept = {each for _, _, ids in live[1] for each in ids}
    again[1] = (
        [(pipeline, key, [each for each in ids if each in kept]) for pipeline, key, ids in again[1]] if kept else []
    )
    live[1] = live[1] if kept else []
    for text, old, new in zip(SHOWN, live, again, strict=True):
        if old != new:
            known.break_rule(
                "E4",
                f"a rebuild differs: {[r for r in new if r not in old][:3]} (live: "
                f"{[r for r in old if r not in new][:3]}), {text}",
            )


def _shown(database: Database, now_ms: int) -> list[list[tuple[Any, ...]]]:
    with database.reading() as tx:
        found = [[_plain(row) for row in own_sql(tx, text, {"now": now_ms})] for text in SHOWN]
    oldest = now_ms - INDEX_DAYS * DAY_MS
    found[1] = [(pipeline, key, _young_ids(value, oldest)) for pipeline, key, value in found[1]]
    return found


def _young_ids(value: bytes, oldest: int) -> list[tuple[str, int]]:
    """Read an id index without what has grown too old for it: that leaves with the next merge, or with a rebuild."""
    index = msgspec.json.decode(value)
    return [(each, sort) for each, sort in zip(index["ids"], index["sorts"], strict=True) if sort >= oldest]


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(bytes(value) if isinstance(value, bytes | memoryview) else value for value in row)
