"""Values that are kept for a time: answers of pages and models."""

from __future__ import annotations

from tidings.store.db.database import Database


class CacheStore:
    """Named caches; retention removes what has expired."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str, key: str) -> bytes | None:
        """Return a value that has not expired."""
        with self._database.reading() as tx:
            value = tx.value("cached_value", name=name, key=key)
        return None if value is None else bytes(value)

    def put(self, name: str, key: str, value: bytes, ttl_seconds: float) -> None:
        """Keep a value for a time."""
        with self._database.transaction() as tx:
            tx.run("cache_value", name=name, key=key, value=value, ttl_ms=round(ttl_seconds * 1000))
