"""How long one query may take. The engine cannot be interrupted, so it is looked at the clock between its calls."""

from __future__ import annotations

from collections.abc import Callable

from tidings.model.errors import SearchTooSlow

QUERY_SECONDS_MAX = 5.0


class Deadline:
    """The time until which a query may go on."""

    def __init__(self, monotonic: Callable[[], float], seconds: float = QUERY_SECONDS_MAX) -> None:
        self._monotonic, self._seconds = monotonic, seconds
        self._until = monotonic() + seconds

    def check(self) -> None:
        """Give up a query that has had its time."""
        if self._monotonic() > self._until:
            raise SearchTooSlow(
                f"the search took more than {self._seconds:g} s and was given up; more words, fewer prefixes (word*) "
                "and fewer OR make it quicker"
            )
