"""The key-value read model of cards."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.model.contracts import ShelfEntry
from tidings.model.pipeline import Pipeline
from tidings.store.database import Database, Row
from tidings.store.shelving import bump, count_writes


class ShelfStore:
    """Readers read; cards are written by merge and settle, other entries by `put`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, pipeline: str, key: str) -> ShelfEntry | None:
        """Return one entry."""
        with self._database.reading() as tx:
            row = tx.one("shelf_entry", pipeline=pipeline, key=key)
        return _entry(row) if row else None

    def get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        """Return the entries that exist."""
        with self._database.reading() as tx:
            rows = tx.many("shelf_entries", [(pipeline, key) for key in keys])
        return {row[0]: _entry(row) for row in rows}

    def newest(
        self, pipeline: str, collection: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[ShelfEntry]:
        """List a collection from the highest sort down, behind `after` (sort, key)."""
        asked = {"pipeline": pipeline, "collection": collection, "limit": limit}
        with self._database.reading() as tx:
            if after is None:
                rows = tx.all("shelf_newest", **asked)
            else:
                rows = tx.all("shelf_newest_after", **asked, sort=after[0], key=after[1])
        return [_entry(row) for row in rows]

    def with_prefix(self, pipeline: str, prefix: str, limit: int = 1000) -> list[ShelfEntry]:
        """List the entries whose key begins so, by key."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        with self._database.reading() as tx:
            rows = tx.all("shelf_prefix", pipeline=pipeline, prefix=prefix, prefix_end=end, limit=limit)
        return [_entry(row) for row in rows]

    def count(self, pipeline: str, collection: str) -> int:
        """Count a collection."""
        with self._database.reading() as tx:
            row = tx.one("shelf_count", pipeline=pipeline, collection=collection)
        return int(row[0]) if row else 0

    def index_sizes(self, pipeline: str, declared: Pipeline) -> tuple[int, int]:
        """Return how many ids the id index lists and how many cards its collection holds."""
        assert declared.id_index is not None
        entry = self.get(pipeline, f"index:{declared.id_index.collection}")
        ids = len(msgspec.json.decode(entry.value)["ids"]) if entry else 0
        return ids, self.count(pipeline, declared.id_index.collection)

    def version(self, pipeline: str) -> int:
        """Return a number that grows with every change of the pipeline's shelf."""
        with self._database.reading() as tx:
            row = tx.one("shelf_version", pipeline=pipeline)
        return int(row[0]) if row else 0

    def put(self, pipeline: str, key: str, value: bytes, *, ttl_seconds: float | None = None) -> bool:
        """Write an entry of no item; an unchanged value is no write. Return whether it was written."""
        with self._database.transaction() as tx:
            now = tx.one("now")
            assert now is not None
            expires = None if ttl_seconds is None else now[0] + round(ttl_seconds * 1000)
            rows = tx.all(
                "put_entry",
                pipeline=pipeline,
                key=key,
                collection="",
                sort=0,
                value=value,
                version=bump(tx, pipeline),
                expires_at=expires,
            )
            count_writes(tx, pipeline, len(rows))
        return bool(rows)

    def delete(self, pipeline: str, key: str) -> bool:
        """Remove an entry."""
        with self._database.transaction() as tx:
            dropped = tx.run("drop_entry", pipeline=pipeline, key=key)
            bump(tx, pipeline)
        return dropped > 0


def _entry(row: Row) -> ShelfEntry:
    key, value, version, revision, sort, written_at, item = row
    return ShelfEntry(key, bytes(value), version, revision, sort, written_at, item if item > 0 else None)
