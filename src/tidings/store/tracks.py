"""Tracks: how the numbers and ranks of cards went, one row each, sampled when a source reports its lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidings.model.pipeline import Pipeline, Ranking
from tidings.model.publication import Collection
from tidings.model.tracks import TrackPoint, extended
from tidings.store.cards import EntryRow
from tidings.store.db.database import Database, Tx

_decode = msgspec.json.Decoder(list[TrackPoint]).decode


class TrackRow(NamedTuple):
    """What is known of one card."""

    key: str
    points: str


class NewTrack(NamedTuple):
    """A row of `put_tracks`."""

    pipeline: str
    key: str
    points: str


class TrackStore:
    """Reads tracks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def points(self, pipeline: str, key: str) -> list[TrackPoint]:
        """Return the points of a card, oldest first, by its key on the shelf."""
        with self._database.reading() as tx:
            found = tx.returning(TrackRow, "tracks", [(pipeline, key)])
        return _decode(found[0].points) if found else []


def put_points(tx: Tx, pipeline: Pipeline, rankings: Sequence[Ranking]) -> None:
    """Add a point for every card that these lists hold, where its numbers or ranks have changed."""
    now: int = tx.value("now")
    for collection in pipeline.collections:
        ranks = _ranks(pipeline, collection, rankings) if collection.tracked else {}
        if ranks:
            _put(tx, pipeline, collection, ranks, now)


def _ranks(pipeline: Pipeline, collection: Collection, rankings: Sequence[Ranking]) -> dict[str, dict[str, int]]:
    """Return the ranks of each card, by key and list."""
    lengths = {each.name: each.length_max for each in pipeline.lists if each.collection == collection.name}
    found: dict[str, dict[str, int]] = {}
    for ranking in rankings:
        for rank, card_id in enumerate(ranking.ids[: lengths.get(ranking.list, 0)], 1):
            found.setdefault(f"{collection.singular}:{card_id}", {})[ranking.list] = rank
    return found


def _put(tx: Tx, pipeline: Pipeline, collection: Collection, ranks: Mapping[str, Mapping[str, int]], now: int) -> None:
    names = [(pipeline.name, key) for key in ranks]
    known = {row.key: _decode(row.points) for row in tx.returning(TrackRow, "tracks", names)}
    pause_ms = round(pipeline.track_seconds * 1000)
    rows: list[NewTrack] = []
    for entry in tx.returning(EntryRow, "shelf_entries", names):
        point = TrackPoint(now, _numbers(collection, bytes(entry.value)), ranks[entry.key])
        points = extended(known.get(entry.key, ()), point, pause_ms=pause_ms)
        if points is not None:
            rows.append(NewTrack(pipeline.name, entry.key, msgspec.json.encode(points).decode()))
    tx.put("put_tracks", rows)


def _numbers(collection: Collection, value: bytes) -> dict[str, int]:
    card = msgspec.json.decode(value)
    return {name: card[name] for name in collection.tracked if isinstance(card.get(name), int)}
