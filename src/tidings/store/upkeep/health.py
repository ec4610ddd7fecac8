"""Whether this process can do its work now, and what the alert rules ask of the database."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tidings.model.errors import StoreUnavailable
from tidings.model.pipeline import Pipeline
from tidings.store.db.database import standby_lag_seconds
from tidings.store.db.executor import StoreExecutor
from tidings.store.store import Store
from tidings.store.upkeep.migrate import check_schema
from tidings.watch.rules import Facts

FREE_BYTES_MIN = 1 << 20
"""With less than this, SQLite's log cannot grow by the pages of one batch."""
REQUESTS_MS = 300_000
"""Over how long the share of failed requests is taken."""
REMEMBER_SECONDS = 1.0
"""How long a refused write counts for the next question: a probe must not write at every request."""


class DatabaseHealth:
    """Looks at the database, its schema, its disk, and whether it can be written."""

    def __init__(
        self,
        store: Store,
        executor: StoreExecutor,
        pipelines: Mapping[str, Pipeline],
        *,
        file: Path | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = store.database
        self._store = store
        self._executor = executor
        self._pipelines = pipelines
        self._file = file
        """The file of a SQLite database, whose disk may be full."""
        self._monotonic = monotonic
        self._refusal: tuple[float, str] | None = None

    def problems(self) -> dict[str, str]:
        """Return what keeps this process from its work, by part; empty means ready. It is what `/readyz` says."""
        # A database that is known to stand still is not asked: the question would stand still too.
        try:
            problem = self._database.standstill() or check_schema(self._database) or self._unwritable()
        except StoreUnavailable as error:
            problem = str(error)
        return {"database": problem} if problem else {}

    def standby_lag_seconds(self) -> float | None:
        """Return by how much the standby we read may be behind; None where it is no standby."""
        return standby_lag_seconds(self._database)

    def facts(self) -> Facts:
        """Gather what the alert rules ask beyond the status."""
        gaps = {
            name: self._store.shelf.index_gap(name, pipeline)
            for name, pipeline in self._pipelines.items()
            if pipeline.id_index is not None
        }
        free = None
        if self._file is not None:
            usage = shutil.disk_usage(self._file.resolve().parent)
            free = usage.free / usage.total
        since = self._store.now_ms() - REQUESTS_MS
        requests, failed = (self._counted(f"api_{what}:all", since) for what in ("requests", "errors"))
        return Facts(gaps=gaps, disk_free_share=free, requests=requests, failed=failed)

    def _counted(self, series: str, since_ms: int) -> int:
        return round(sum(point.value for point in self._store.status_views.points(series, since_ms=since_ms)))

    def _unwritable(self) -> str | None:
        """Say why nothing can be written. After a refused write only a write that succeeds shows that all is well."""
        full = self._full_disk()
        if full is not None or self._executor.trouble is None:
            return full
        if self.standby_lag_seconds() is not None:
            return None  # a standby refuses every write, and that is no problem: it is there to be read
        if self._refusal is not None and self._monotonic() - self._refusal[0] < REMEMBER_SECONDS:
            return self._refusal[1]
        try:
            self._store.caches.put("readiness", "write", b"", 1)
        except StoreUnavailable as error:
            self._refusal = (self._monotonic(), str(error))
            return self._refusal[1]
        # Only now: a read that succeeds says nothing about a full disk.
        self._executor.trouble = self._refusal = None
        return None

    def _full_disk(self) -> str | None:
        if self._file is None or shutil.disk_usage(self._file.resolve().parent).free >= FREE_BYTES_MIN:
            return None
        return f"the disk that holds {self._file.name} is full; free some space and tidings goes on"
