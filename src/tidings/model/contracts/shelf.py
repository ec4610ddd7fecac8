"""What readers read beside the search: cards, links, and how the numbers of cards went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidings.model.tracks import TrackPoint


@dataclass(frozen=True, slots=True)
class ShelfEntry:
    """A card as stored: encoded JSON."""

    key: str
    value: bytes
    version: int
    revision: int
    sort: int
    written_at: int
    item: int | None = None
    """The item it shows, where the store tells; a card's id may differ from its item's key."""


class Shelf(Protocol):
    """The key-value read model."""

    def get(self, pipeline: str, key: str) -> ShelfEntry | None:
        """Return one entry."""
        ...

    def get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        """Return the entries that exist."""
        ...

    def newest(
        self, pipeline: str, collection: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[ShelfEntry]:
        """List a collection from the highest sort down, behind `after` (sort, key)."""
        ...

    def count(self, pipeline: str, collection: str) -> int:
        """Count a collection."""
        ...

    def version(self, pipeline: str) -> int:
        """Return a number that grows with every change of the pipeline's shelf."""
        ...

    def listed(self, pipeline: str, collection: str) -> Sequence[str]:
        """Return the keys of a collection where they are kept apart from its cards; else nothing."""
        ...


@dataclass(frozen=True, slots=True)
class ThreadNode:
    """One place in a thread: a ref, its parent's ref, its order among siblings, its depth."""

    ref: str
    parent: str | None
    position: int | None
    depth: int


class Links(Protocol):
    """Relations between items."""

    def thread(self, pipeline: str, relation: str, root: str, limit: int = 10_000) -> list[ThreadNode]:
        """Return everything below `root`, root first, parents before children."""
        ...

    def parents(self, pipeline: str, relation: str, child: str) -> list[str]:
        """Return the effective parent (first) and the other stated ones."""
        ...

    def children(self, pipeline: str, relation: str, parent: str, limit: int = 1000) -> list[str]:
        """Return refs in order."""
        ...

    def children_of_each(
        self, pipeline: str, relation: str, parents: Sequence[str], limit: int = 100_000
    ) -> Mapping[str, Sequence[str]]:
        """Return the refs below each of several, the lowest first; those without any are absent."""
        ...


class Tracks(Protocol):
    """How the numbers and ranks of cards went."""

    def points(self, pipeline: str, key: str) -> list[TrackPoint]:
        """Return the points of a card, oldest first, by its key on the shelf."""
        ...
