"""Whether this process can do its work now, and if not, why: what `/readyz` says."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tidings.app import App
from tidings.model.errors import StoreUnavailable
from tidings.store.migrate import check_schema

FREE_BYTES_MIN = 1 << 20
"""With less than this, SQLite's log cannot grow by the pages of one batch."""
REMEMBER_SECONDS = 1.0


class Readiness:
    """Looks at the database, its schema, and whether it can be written; looks again after a second at most."""

    def __init__(self, app: App, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._monotonic = monotonic
        self._refused: tuple[float, str] | None = None

    def problems(self) -> dict[str, str]:
        """Return the problems by part; empty means ready."""
        # What is known to stand still is not asked, or the question would stand too.
        try:
            problem = self._app.database.standstill() or check_schema(self._app.database) or self._unwritable()
        except StoreUnavailable as error:
            problem = str(error)
        return {"database": problem} if problem else {}

    def _unwritable(self) -> str | None:
        """Say why nothing can be written. After a refused write only a write that succeeds tells that all is well."""
        full = self._full_disk()
        if full is not None or self._app.executor.trouble is None:
            return full
        if self._refused is not None and self._monotonic() - self._refused[0] < REMEMBER_SECONDS:
            return self._refused[1]
        try:
            self._app.store.ledgers.put("readiness", "write", b"", 1)
        except StoreUnavailable as error:
            self._refused = (self._monotonic(), str(error))
            return self._refused[1]
        self._app.executor.trouble = self._refused = None
        return None

    def _full_disk(self) -> str | None:
        if self._app.database.dialect != "sqlite":
            return None
        file = Path(self._app.wiring.database_url.removeprefix("sqlite:///"))
        if shutil.disk_usage(file.resolve().parent).free >= FREE_BYTES_MIN:
            return None
        return f"the disk that holds {file.name} is full; free some space and tidings goes on"
