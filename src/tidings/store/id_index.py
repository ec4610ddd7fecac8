"""The id index: the list of a collection's cards that readers are shown, newest first, within number and age.

It is written only under the lock of the merge. What it does not list is retired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tidings.model.clock import DAY_MS
from tidings.model.pipeline import Pipeline
from tidings.model.publication import IdIndex
from tidings.store.cards import EntryRow, count_writes, draw_versions
from tidings.store.db.database import Tx

_encode = msgspec.json.Encoder(order="deterministic").encode


class CollectionCard(NamedTuple):
    """A card of a collection."""

    id: int
    key: str
    sort: int


def held_ids(tx: Tx, pipeline: Pipeline) -> dict[str, int]:
    """Return the listed ids with the sort each was entered with."""
    entry = tx.row(EntryRow, "shelf_entry", pipeline=pipeline.name, key=f"index:{_index(pipeline).collection}")
    held = msgspec.json.decode(entry.value) if entry else {"ids": [], "sorts": []}
    return dict(zip(held["ids"], held["sorts"], strict=True))


def collection_cards(tx: Tx, pipeline: Pipeline) -> dict[str, CollectionCard]:
    """Return every card of the indexed collection by its id."""
    collection = pipeline.collection(_index(pipeline).collection)
    cards = tx.rows(CollectionCard, "shown_in_collection", pipeline=pipeline.name, collection=collection.name)
    return {card.key.removeprefix(f"{collection.singular}:"): card for card in cards}


def that_fit(pipeline: Pipeline, ids: Mapping[str, int], now_ms: int) -> dict[str, int]:
    """Return those that the index has room for, newest first."""
    index = _index(pipeline)
    oldest = now_ms - index.days * DAY_MS
    young = [(sort, each) for each, sort in ids.items() if sort >= oldest]
    return {each: sort for sort, each in sorted(young, reverse=True)[: index.newest]}


def write_ids(tx: Tx, pipeline: Pipeline, ids: Mapping[str, int], now_ms: int) -> int:
    """Write the list; return 1 if it has changed."""
    index = _index(pipeline)
    written: Any = tx.value(
        "put_entry",
        pipeline=pipeline.name,
        key=f"index:{index.collection}",
        collection="",
        sort=0,
        value=_encode({"ids": list(ids), "sorts": list(ids.values())}),
        version=draw_versions(tx, pipeline.name),
        expires_at=now_ms + index.days * DAY_MS,
    )
    return int(written is not None)


def mend_ids(tx: Tx, pipeline: Pipeline) -> dict[str, CollectionCard]:
    """Make the index what the cards say; return the cards that it has no room for, which are to be retired.

    An id that is listed stays where the merge has put it: a later revision moves its card, never its place. A card that
    is missing from the list comes back where it fits: an index that was damaged must not cost items.
    """
    now_ms, held, cards = int(tx.value("now")), held_ids(tx, pipeline), collection_cards(tx, pipeline)
    wanted = {each: held.get(each, card.sort) for each, card in cards.items()}
    kept = that_fit(pipeline, wanted, now_ms)
    if list(kept.items()) != list(held.items()):
        count_writes(tx, pipeline.name, write_ids(tx, pipeline, kept, now_ms))
    return {each: card for each, card in cards.items() if each not in kept}


def _index(pipeline: Pipeline) -> IdIndex:
    assert pipeline.id_index is not None
    return pipeline.id_index
