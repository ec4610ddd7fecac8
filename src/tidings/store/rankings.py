"""Ranked lists: the newest order of each, as an entry of the shelf beside the cards it names."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.model.errors import BadInput
from tidings.model.pipeline import Pipeline, Ranking
from tidings.model.publication import RankedList
from tidings.store.cards import EntryRow, count_writes, draw_versions
from tidings.store.db.database import Tx

_encode = msgspec.json.Encoder(order="deterministic").encode


def put_rankings(tx: Tx, pipeline: Pipeline, rankings: Sequence[Ranking]) -> None:
    """Replace the order of lists, each up to its length; an order that is as before is not written."""
    declared = {each.name: each for each in pipeline.lists}
    for ranking in rankings:
        if ranking.list not in declared:
            raise BadInput(f"{pipeline.name} declares no list {ranking.list!r}")
        _put(tx, pipeline, declared[ranking.list], ranking)


def _put(tx: Tx, pipeline: Pipeline, ranked: RankedList, ranking: Ranking) -> None:
    value = _encode({"ids": ranking.ids[: ranked.length_max]})
    before = tx.row(EntryRow, "shelf_entry", pipeline=pipeline.name, key=ranked.key)
    # A version is drawn only for a change: every answer that is kept in memory is made again after one.
    if before is not None and bytes(before.value) == value:
        return
    tx.value(
        "put_entry",
        pipeline=pipeline.name,
        key=ranked.key,
        collection="",
        sort=0,
        value=value,
        version=draw_versions(tx, pipeline.name),
        expires_at=None,
    )
    count_writes(tx, pipeline.name, 1)
