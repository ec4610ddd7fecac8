"""Reading a range of ids: what a source offers that can be asked for what lies far behind."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Ranged(Protocol):
    """A source that also reads a range, given by the options `from` and `to`; broken off, it goes on where it was."""

    def progress(self, cursor: Any) -> tuple[int, int] | None:
        """Return how many ids of the range under way are read, of how many; None where no range is."""
        ...
