"""The key-value read model of cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tidings.model.contracts import ShelfEntry
from tidings.model.pipeline import Pipeline
from tidings.store.cards import EntryRow, count_writes, draw_versions, drop_entry
from tidings.store.db.database import Database


class CardKey(NamedTuple):
    """Under which key a card stands."""

    key: str


class ShelfStore:
    """Readers read; cards are written by merge and settle, other entries by `put`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, pipeline: str, key: str) -> ShelfEntry | None:
        """Return one entry."""
        with self._database.reading() as tx:
            row = tx.row(EntryRow, "shelf_entry", pipeline=pipeline, key=key)
        return _entry(row) if row else None

    def get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        """Return the entries that exist."""
        with self._database.reading() as tx:
            rows = tx.returning(EntryRow, "shelf_entries", [(pipeline, key) for key in keys])
        return {row.key: _entry(row) for row in rows}

    def newest(
        self, pipeline: str, collection: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[ShelfEntry]:
        """List a collection from the highest sort down, behind `after` (sort, key)."""
        values: dict[str, Any] = {"pipeline": pipeline, "collection": collection, "limit": limit}
        with self._database.reading() as tx:
            if after is None:
                rows = tx.rows(EntryRow, "shelf_newest", **values)
            else:
                rows = tx.rows(EntryRow, "shelf_newest_after", **values, sort=after[0], key=after[1])
        return [_entry(row) for row in rows]

    def listed(self, pipeline: str, collection: str) -> Sequence[str]:  # noqa: ARG002
        """Cards list themselves: none can be missing."""
        return ()

    def with_prefix(self, pipeline: str, prefix: str, limit: int = 1000) -> list[ShelfEntry]:
        """List the entries whose key begins so, by key."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        with self._database.reading() as tx:
            rows = tx.rows(EntryRow, "shelf_prefix", pipeline=pipeline, prefix=prefix, prefix_end=end, limit=limit)
        return [_entry(row) for row in rows]

    def count(self, pipeline: str, collection: str) -> int:
        """Count a collection."""
        with self._database.reading() as tx:
            return int(tx.value("shelf_count", pipeline=pipeline, collection=collection))

    def index_gap(self, pipeline: str, declared: Pipeline) -> frozenset[str]:
        """Return the keys of cards that the id index lists and the shelf does not hold, or the other way round."""
        assert declared.id_index is not None
        collection = declared.collection(declared.id_index.collection)
        entry = self.get(pipeline, f"index:{collection.name}")
        ids = msgspec.json.decode(entry.value)["ids"] if entry else []
        with self._database.reading() as tx:
            held = {row.key for row in tx.rows(CardKey, "shelf_keys", pipeline=pipeline, collection=collection.name)}
        return frozenset({f"{collection.singular}:{each}" for each in ids} ^ held)

    def version(self, pipeline: str) -> int:
        """Return a number that grows with every change of the pipeline's shelf."""
        with self._database.reading() as tx:
            return int(tx.value("shelf_version", pipeline=pipeline) or 0)

    def put(self, pipeline: str, key: str, value: bytes, *, ttl_seconds: float | None = None) -> bool:
        """Write an entry of no item; an unchanged value is no write. Return whether it was written."""
        with self._database.transaction() as tx:
            expires = None if ttl_seconds is None else tx.value("now") + round(ttl_seconds * 1000)
            written = tx.value(
                "put_entry",
                pipeline=pipeline,
                key=key,
                collection="",
                sort=0,
                value=value,
                version=draw_versions(tx, pipeline),
                expires_at=expires,
            )
            count_writes(tx, pipeline, int(written is not None))
        return written is not None

    def delete(self, pipeline: str, key: str) -> bool:
        """Remove an entry."""
        with self._database.transaction() as tx:
            return drop_entry(tx, pipeline, key) > 0


def _entry(row: EntryRow) -> ShelfEntry:
    item = row.id if row.id > 0 else None
    return ShelfEntry(row.key, bytes(row.value), row.version, row.revision, row.sort, row.written_at, item)
