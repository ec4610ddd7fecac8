"""The items as workers see them: claim, renew, settle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidings.model.item import Item, JournalRow, Lease
from tidings.model.settlement import Settled, Settlement, Swept


class Items(Protocol):
    """The remembered items and who may act on them."""

    def claim(
        self,
        pipeline: str,
        lane: str,
        limit: int,
        owner: str,
        lease_seconds: float,
        *,
        in_order: bool = False,
        suspects_alone: bool = False,
    ) -> list[Lease]:
        """Lease up to `limit` due items: by priority and newest first, with a share for the oldest; or all by age.

        With `suspects_alone`, an item whose worker vanished is leased alone.
        """
        ...

    def renew(self, leases: Sequence[tuple[int, int]], lease_seconds: float) -> set[int]:
        """Prolong leases (id, token) that still hold; return their ids."""
        ...

    def regain(self, leases: Sequence[tuple[int, int]], lease_seconds: float) -> set[int]:
        """Take leases up again that ran out while the store was away and were not taken by others; return their ids."""
        ...

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """Close a batch: the guarded update first, effects only for the ids it returned."""
        ...

    def release(self, leases: Sequence[tuple[int, int]]) -> int:
        """Give leases back unused, with their attempt."""
        ...

    def were_settled(self, leases: Sequence[tuple[int, int]]) -> set[int]:
        """Tell which leases (id, token) were closed: read back after a COMMIT whose reply was lost."""
        ...

    def prefetch(self, pipeline: str, refs: Sequence[str]) -> dict[str, bytes]:
        """Return the accepted bodies of other items by ref; one that was not accepted yet is absent."""
        ...

    def next_due_ms(self, pipelines: Sequence[str], lanes: Sequence[str]) -> int | None:
        """Return how long until something is due (0: now) in the lanes, or None when nothing waits for time."""
        ...

    def with_due(self, pipelines: Sequence[str], lane: str) -> list[str]:
        """Return those of the pipelines that have something due in a lane: looking keeps no process from writing."""
        ...

    def sweep(self, limit: int = 500) -> Swept:
        """Return expired leases to the queue, by the token seen."""
        ...

    def find(self, pipeline: str, kind: str, key: str) -> Item | None:
        """Return one item."""
        ...

    def life(self, item: int) -> list[JournalRow]:
        """Return an item's journal, oldest first."""
        ...
