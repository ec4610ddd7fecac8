"""What followers tell of themselves, for a status that is asked in another process."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidings.model.views import FollowerView
from tidings.store.db.database import Database

CACHE = "followers"
KEPT_MS = 60_000
"""A follower that has told nothing for so long is gone: its process ended, or was killed."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(FollowerView).decode


class CachedValue(NamedTuple):
    """A value of a cache."""

    value: bytes


class FollowerNotes:
    """Notes of all processes; they fade by themselves."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, view: FollowerView) -> None:
        """Note how a follower stands."""
        # Every serving process follows for itself, and each may lag differently.
        key = f"{view.name}@{view.process}"
        with self._database.transaction() as tx:
            tx.run("cache_value", name=CACHE, key=key, value=_encode(view), ttl_ms=KEPT_MS)

    def all(self) -> list[FollowerView]:
        """Return what the followers of all processes told lately."""
        with self._database.reading() as tx:
            return [_decode(bytes(each.value)) for each in tx.rows(CachedValue, "cached_values", name=CACHE)]
