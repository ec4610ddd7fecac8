"""Which processes run, and which of them watches over all: notes that fade by themselves."""

from __future__ import annotations

import msgspec

from tidings.model.views import ProcessView
from tidings.store.db.database import Database
from tidings.store.followers import CachedValue

CACHE = "processes"
KEPT_MS = 24 * 3_600_000
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ProcessView).decode


class ProcessNotes:
    """Every process tells that it lives; one at a time has the watch."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, process: str, role: str) -> None:
        """Note that a process lives."""
        with self._database.transaction() as tx:
            view = ProcessView(process, role, tx.value("now"))
            tx.run("cache_value", name=CACHE, key=process, value=_encode(view), ttl_ms=KEPT_MS)

    def all(self) -> list[ProcessView]:
        """Return the processes of the last day."""
        with self._database.reading() as tx:
            return [_decode(bytes(each.value)) for each in tx.rows(CachedValue, "cached_values", name=CACHE)]

    def take_watch(self, process: str, seconds: float) -> bool:
        """Take the watch, or keep it; False while another process has it."""
        with self._database.transaction() as tx:
            return tx.run("take_watch", process=process.encode(), ttl_ms=round(seconds * 1000)) > 0
