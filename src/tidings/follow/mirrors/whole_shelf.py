"""The whole shelf as changes: what a mirror should hold, read from the store at once instead of from the stream."""

from __future__ import annotations

from tidings.follow.mirrors.names import MirroredCollection, MirroredPipeline
from tidings.follow.mirrors.pipeline_copy import INDEX
from tidings.model.changes import Change
from tidings.model.contracts import Shelf, ShelfEntry

_PAGE = 500


def whole_shelf(shelf: Shelf, plan: MirroredPipeline, *, newest: int) -> list[Change]:
    """Return the newest cards of every mirrored collection, and its id index."""
    changes: list[Change] = []
    for collection in plan.collections.values():
        changes += _cards(shelf, plan.name, collection, newest)
        index = shelf.get(plan.name, f"{INDEX}{collection.name}") if collection.has_ids else None
        if index is not None:
            changes.append(_change(plan.name, "", index))
    return changes


def _cards(shelf: Shelf, pipeline: str, collection: MirroredCollection, newest: int) -> list[Change]:
    found: list[ShelfEntry] = []
    while len(found) < newest:
        after = (found[-1].sort, found[-1].key) if found else None
        page = shelf.newest(pipeline, collection.name, limit=min(_PAGE, newest - len(found)), after=after)
        found += page
        if not page:
            break
    return [_change(pipeline, collection.name, entry) for entry in found]


def _change(pipeline: str, collection: str, entry: ShelfEntry) -> Change:
    item = entry.item if entry.item is not None else -1
    return Change(
        entry.version, pipeline, entry.key, collection, entry.sort, entry.value, entry.revision, item, entry.written_at
    )
