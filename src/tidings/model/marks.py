"""What readers have read, starred and searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

DEFAULT_READER = "reader"
"""Whose marks they are where nobody is named."""
SEARCHES_MAX = 200
MARKED_MAX = 1_000
"""How many items one call may mark."""


class Mark(NamedTuple):
    """One reader's marks of one item: `read_at` is 0 where it is kept unread, None where only the line tells."""

    item: int
    read_at: int | None
    starred_at: int | None


class ShelfPlace(NamedTuple):
    """Where an item's card stands."""

    item: int
    pipeline: str
    collection: str
    key: str


class SavedSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A search that a reader keeps under a name."""

    name: str
    title: str
    query: str
    pipeline: str | None = None
    created_at: int = 0


class Marks(Protocol):
    """Read and star marks, and saved searches, of each reader."""

    def of(self, reader: str, items: Sequence[int]) -> dict[int, Mark]:
        """Return the marks that exist."""
        ...

    def lines(self, reader: str) -> Mapping[str, int]:
        """Return up to which item everything of a pipeline counts as read."""
        ...

    def mark(self, reader: str, items: Sequence[int], *, read: bool | None = None, starred: bool | None = None) -> int:
        """Mark items that are shown; None leaves a mark as it is. Return how many are shown."""
        ...

    def read_up_to(self, reader: str, pipelines: Sequence[str], at_ms: int) -> None:
        """Mark everything of pipelines as read that was shown by a time."""
        ...

    def starred(self, reader: str, limit: int) -> list[int]:
        """Return starred items, the latest star first."""
        ...

    def places(self, items: Sequence[int]) -> dict[int, ShelfPlace]:
        """Return where the cards of items stand."""
        ...

    def searches(self, reader: str) -> list[SavedSearch]:
        """Return a reader's saved searches, by title."""
        ...

    def put_search(self, reader: str, search: SavedSearch) -> bool:
        """Keep a search; False where there are too many."""
        ...

    def delete_search(self, reader: str, name: str) -> bool:
        """Forget a search; return whether it was there."""
        ...


def is_read(item: int, mark: Mark | None, line: int) -> bool:
    """Tell whether an item counts as read: by its own mark, or else by the line."""
    if mark is None or mark.read_at is None:
        return item <= line
    return mark.read_at > 0
