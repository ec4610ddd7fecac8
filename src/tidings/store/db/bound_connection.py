"""A connection to PostgreSQL whose every wait is bounded on our side: the server's own limits end with the server."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

from tidings.store.db.database import Row

T = TypeVar("T")


class BoundConnection(psycopg.Connection[Row]):
    """Asks a judge, ten times a second while the server is silent, whether to wait on."""

    judge: Callable[[BoundConnection, float], None] | None = None
    """Called with the seconds of silence; raises where waiting is in vain."""
    is_unlimited = False
    """A statement may take as long as it needs, such as the copy of a whole table."""

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Run one exchange with the server; a caller that has a limit of its own is not judged."""
        if self.judge is None or kwargs.get("timeout") is not None:
            return super().wait(gen, *args, **kwargs)
        return super().wait(self._judged(gen), *args, **kwargs)

    def _judged(self, gen: PQGen[T]) -> Generator[Any, Any, T]:
        """Pass everything through. The driver resumes a generator with nothing when a tick passed without a byte."""
        since = time.monotonic()
        try:
            ready = yield next(gen)
            while True:
                if ready:
                    since = time.monotonic()
                elif self.judge is not None:
                    self.judge(self, time.monotonic() - since)
                ready = yield gen.send(ready)
        except StopIteration as end:
            value: T = end.value
            return value

    def cut(self, why: str) -> psycopg.OperationalError:
        """Close at once, without a word to the server; return what to raise."""
        self.close()
        return psycopg.OperationalError(why)
