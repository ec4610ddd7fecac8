"""Reading by id: what a source offers that can be asked for a range far behind, or for what it could not read."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable


class UnreadId(NamedTuple):
    """An id that could not be read so far."""

    id: int
    tries: int
    reason: str
    next_at: int | None
    """When the source asks again by itself, in UTC milliseconds; None once it has given up."""


@runtime_checkable
class Ranged(Protocol):
    """A source that also reads a range, by the options `from` and `to`, and asks again by the option `unread`.

    A range that was broken off goes on where it was; one that is through but not complete is completed.
    """

    def progress(self, cursor: Any) -> tuple[int, int] | None:
        """Return how many ids of the range under way are read, of how many; None where no range is."""
        ...

    def unread(self, cursor: Any) -> list[UnreadId]:
        """List the ids that could not be read, lowest first."""
        ...
