"""What later runs add to cards that are not written again for it: one entry of the shelf for each collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tidings.model.gathering import Gathered, gathered_key
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection
from tidings.store.cards import EntryRow, count_writes, draw_versions
from tidings.store.db.database import Tx

_encode = msgspec.json.Encoder(order="deterministic").encode
_PAIRS = dict[str, dict[str, Any]]


def put_gathered(tx: Tx, pipeline: Pipeline, gathered: Sequence[Gathered]) -> None:
    """Keep what the cards do not say themselves; nothing is written where that is nothing new."""
    for name in dict.fromkeys(each.collection for each in gathered):
        values: _PAIRS = {}
        for each in gathered:
            if each.collection == name:
                values.setdefault(each.id, {}).update(each.values)
        _put(tx, pipeline, pipeline.collection(name), values)


def _put(tx: Tx, pipeline: Pipeline, collection: Collection, values: _PAIRS) -> None:
    key = gathered_key(collection)
    entry = tx.row(EntryRow, "shelf_entry", pipeline=pipeline.name, key=key)
    held: _PAIRS = msgspec.json.decode(entry.value) if entry else {}
    # The whole entry is looked through only where something comes in: cards that left, and what they say by now, go.
    fresh = _unsaid(tx, pipeline, collection, values)
    if all(held.get(card, {}).items() >= each.items() for card, each in fresh.items()):
        return
    together = {card: held.get(card, {}) | fresh.get(card, {}) for card in held | fresh}
    tx.value(
        "put_entry",
        pipeline=pipeline.name,
        key=key,
        collection="",
        sort=0,
        value=_encode(_unsaid(tx, pipeline, collection, together)),
        version=draw_versions(tx, pipeline.name),
        expires_at=None,
    )
    count_writes(tx, pipeline.name, 1)


def _unsaid(tx: Tx, pipeline: Pipeline, collection: Collection, values: _PAIRS) -> _PAIRS:
    """Return what the cards that stand on the shelf do not say themselves."""
    keys = {f"{collection.singular}:{card}": card for card in values}
    cards = tx.returning(EntryRow, "shelf_entries", [(pipeline.name, key) for key in keys])
    unsaid: _PAIRS = {}
    for entry in cards:
        said = msgspec.json.decode(entry.value).get(collection.gathers, {})
        if more := {name: each for name, each in values[keys[entry.key]].items() if name not in said}:
            unsaid[keys[entry.key]] = more
    return unsaid
