"""The shelf as readers see it: cards, with what later runs have added to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from tidings.model.contracts import Shelf, ShelfEntry
from tidings.model.gathering import gathered_key, with_gathered
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection


class GatheredShelf:
    """A shelf whose cards hold what was gathered since they were written; other entries are as they stand."""

    def __init__(self, shelf: Shelf, pipelines: Mapping[str, Pipeline]) -> None:
        self._shelf = shelf
        self._collections = {
            name: {each.singular: each for each in pipeline.collections if each.gathers}
            for name, pipeline in pipelines.items()
        }
        self._known: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        self.count = shelf.count
        self.version = shelf.version
        self.listed = shelf.listed

    def get(self, pipeline: str, key: str) -> ShelfEntry | None:
        """Return one entry."""
        entry = self._shelf.get(pipeline, key)
        return self._joined(pipeline, [entry])[0] if entry is not None else None

    def get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        """Return the entries that exist."""
        entries = self._shelf.get_many(pipeline, keys)
        return dict(zip(entries, self._joined(pipeline, list(entries.values())), strict=True))

    def newest(
        self, pipeline: str, collection: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[ShelfEntry]:
        """List a collection from the highest sort down, behind `after` (sort, key)."""
        return self._joined(pipeline, self._shelf.newest(pipeline, collection, limit=limit, after=after))

    def _joined(self, pipeline: str, entries: list[ShelfEntry]) -> list[ShelfEntry]:
        collections = self._collections.get(pipeline, {})
        present = {entry.key.partition(":")[0] for entry in entries} & collections.keys()
        gathered = {singular: self._gathered(pipeline, collections[singular]) for singular in present}
        return [_with(collections, gathered, entry) for entry in entries] if any(gathered.values()) else entries

    def _gathered(self, pipeline: str, collection: Collection) -> dict[str, Any]:
        """Return what was gathered, by the ids of cards; decoded again only when it has changed."""
        entry = self._shelf.get(pipeline, gathered_key(collection))
        if entry is None:
            return {}
        known = self._known.get((pipeline, collection.name))
        if known is None or known[0] != entry.version:
            known = self._known[pipeline, collection.name] = (entry.version, msgspec.json.decode(entry.value))
        return known[1]


def _with(
    collections: Mapping[str, Collection], gathered: Mapping[str, Mapping[str, Any]], entry: ShelfEntry
) -> ShelfEntry:
    singular, _, card = entry.key.partition(":")
    values = gathered.get(singular, {}).get(card)
    return replace(entry, value=with_gathered(collections[singular], entry.value, values)) if values else entry
