"""Claims: who may act on which item, and until when. Every write to a leased row carries its token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tidings.model.item import PRIORITIES, TOP, Item, JournalRow, Lease, split_above, split_ref
from tidings.model.pipeline import Pipeline
from tidings.model.publication import delivery_keys
from tidings.model.settlement import Settled, Settlement, Swept
from tidings.store.db.database import Database, Tx
from tidings.store.items import journal
from tidings.store.items.restarts import place_again
from tidings.store.items.settle import ItemId, settle
from tidings.store.items.sweeps import LOST_LEASES_MAX, sweep
from tidings.store.links import ParentRow

# Newest first alone would never reach old items while a backlog lasts.
OLDEST_SHARE = 0.2
PLACE_BATCH = 500
"""How many items whose card names a wrong parent begin again in one transaction."""
LeaseName = tuple[int, int]
"""An item's id and the token of the lease on it."""


class Released(NamedTuple):
    """An item whose lease was given back."""

    id: int
    state: str
    attempts: int
    token: int


class BodyRow(NamedTuple):
    """One body."""

    item: int
    revision: int
    body: bytes


class Closed(NamedTuple):
    """An item whose lease a journal row closed."""

    item: int


class Keyed(NamedTuple):
    """The key of an item."""

    key: str


class GatheredRow(NamedTuple):
    """A delivery that waits for a digest."""

    key: str
    body: bytes


class ItemStore:
    """The working tables."""

    def __init__(
        self, database: Database, pipelines: Mapping[str, Pipeline], *, on_work: Callable[[], None] = lambda: None
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._on_work = on_work
        # Kept by each process for itself: if every worker gives its share, all of them together do.
        self._owed: dict[tuple[str, str], float] = {}
        self._began_with_suspects: dict[tuple[str, str], bool] = {}

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
        """Lease up to `limit` due items: by priority and newest first, with a share for the oldest.

        `in_order` leases by age alone, for lanes whose effects people see in a row. `suspects_alone` is for lanes that
        run a batch as one: an item whose worker vanished is leased alone there, in every other turn, because it may be
        what the worker died of.
        """
        share = self._oldest_share(pipeline, lane, limit)
        values: dict[str, Any] = {
            "pipeline": pipeline,
            "lane": lane,
            "owner": owner,
            "lease_ms": round(lease_seconds * 1000),
        }
        with self._database.transaction() as tx:
            if in_order:
                return tx.rows(Lease, "claim_in_order", **values, limit=limit)
            # Every other turn: if suspects always came first, a few poisoned items could hold up the whole lane; if
            # they came last, a busy lane would never reach them.
            if suspects_alone and self._begins_with_suspects(pipeline, lane) and limit:
                suspects = tx.rows(Lease, "claim_suspect", **values, limit=1)
                if suspects:
                    return suspects
            # A batch runs as one. An item that kills the process would take the attempts of all others in the batch
            # with it.
            values["lost_max"] = 0 if suspects_alone else LOST_LEASES_MAX
            return _claim_by_priority(tx, values, limit, share)

    def _begins_with_suspects(self, pipeline: str, lane: str) -> bool:
        begins = not self._began_with_suspects.get((pipeline, lane), False)
        self._began_with_suspects[pipeline, lane] = begins
        return begins

    def _oldest_share(self, pipeline: str, lane: str, limit: int) -> int:
        """Return how many of a claim go to the oldest; what small claims cannot give is owed to the next ones."""
        owed = self._owed.get((pipeline, lane), 0.0) + limit * OLDEST_SHARE
        share = min(limit, int(owed + 1e-9))
        self._owed[pipeline, lane] = owed - share
        return share

    def renew(self, leases: Sequence[LeaseName], lease_seconds: float) -> set[int]:
        """Prolong leases that still hold; return their ids."""
        with self._database.transaction() as tx:
            # Sorted, because settle locks items in the order of their ids too: two orders could deadlock.
            rows = tx.returning(ItemId, "renew_leases", sorted(leases), lease_ms=round(lease_seconds * 1000))
        return {row.id for row in rows}

    def regain(self, leases: Sequence[LeaseName], lease_seconds: float) -> set[int]:
        """Take leases up again that no other process has taken, though they may have run out; return their ids.

        For a holder that lived on while it could not reach the store. What was swept meanwhile is lost, but no worker
        died of it: the loss is not counted, unless a delivery may have been sent.
        """
        with self._database.transaction() as tx:
            rows = tx.returning(ItemId, "regain_leases", sorted(leases), lease_ms=round(lease_seconds * 1000))
            held = {row.id for row in rows}
            tx.put("excuse_losses", sorted((item, token) for item, token in leases if item not in held))
        return held

    def release(self, leases: Sequence[LeaseName]) -> int:
        """Give leases back unused, with their attempts."""
        with self._database.transaction() as tx:
            released = tx.returning(Released, "release_leases", sorted(leases))
            journal.write(
                tx,
                [
                    journal.Entry(each.id, "released", each.token, each.attempts, each.state, each.state, "released")
                    for each in released
                ],
            )
        return len(released)

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """Close a batch: the guarded statement first, effects only for the ids it returned."""
        settled = settle(self._database, self._pipelines, settlements)
        # In transactions of their own: items must not be locked behind the lock of a card. If we are killed before,
        # the next sweep begins them again.
        for _ in range(0, settled.misplaced, PLACE_BATCH):
            self.place_again()
        return settled

    def place_again(self, limit: int = PLACE_BATCH) -> int:
        """Begin items again whose card names a wrong parent."""
        placed = place_again(self._database, self._pipelines, limit)
        if placed:
            self._on_work()
        return placed

    def were_settled(self, leases: Sequence[LeaseName]) -> set[int]:
        """Tell which leases a journal row closed: read back after a COMMIT whose reply was lost."""
        with self._database.reading() as tx:
            return {row.item for row in tx.returning(Closed, "closed_tokens", leases)}

    def sweep(self, limit: int = 500) -> Swept:
        """Return expired leases to the queue, by the token seen; the third loss makes a dead letter."""
        swept = sweep(self._database, self._pipelines, limit)
        if limit:
            self.place_again(limit)
        if swept.expired:
            self._on_work()
        return swept

    def next_due_ms(self, pipelines: Sequence[str], lanes: Sequence[str]) -> int | None:
        """Return how long until something is due (0: now) in the lanes, or None when nothing waits for time."""
        with self._database.reading() as tx:
            values = [tx.value("next_due", pipeline=pipeline, lane=lane) for pipeline in pipelines for lane in lanes]
        waits = [wait for wait in values if wait is not None]
        return max(0, min(waits)) if waits else None

    def with_due(self, pipelines: Sequence[str], lane: str) -> list[str]:
        """Return those of the pipelines that have something due in a lane: looking keeps no process from writing."""
        with self._database.reading():
            return [pipeline for pipeline in pipelines if self.next_due_ms([pipeline], [lane]) == 0]

    def deliveries_before(self, channel: str, item: int) -> int:
        """Count the older deliveries to a channel that are still to be sent."""
        values = {**delivery_keys(channel), "id": item}
        with self._database.reading() as tx:
            return sum(tx.value("deliveries_before", pipeline=pipeline, **values) for pipeline in self._pipelines)

    def open_digest(self, pipeline: str, prefix: str) -> str | None:
        """Return the key of a route's digest that can still be joined."""
        with self._database.reading() as tx:
            found = tx.row(Keyed, "open_digest", pipeline=pipeline, prefix=prefix, prefix_end=f"{prefix[:-1]}0")
        return found.key if found is not None else None

    def gathered_deliveries(self, pipeline: str, digest: str, limit: int) -> list[GatheredRow]:
        """Return the deliveries that joined a digest and still wait for it, oldest first."""
        with self._database.reading() as tx:
            return tx.rows(GatheredRow, "gathered_deliveries", pipeline=pipeline, digest=digest, limit=limit)

    def prefetch(self, pipeline: str, refs: Sequence[str]) -> dict[str, bytes]:
        """Return the accepted bodies of other items by ref; one that was not accepted yet is absent."""
        with self._database.reading() as tx:
            return accepted_bodies(tx, pipeline, refs)

    def find(self, pipeline: str, kind: str, key: str) -> Item | None:
        """Return one item."""
        with self._database.reading() as tx:
            return tx.row(Item, "find_item", pipeline=pipeline, kind=kind, key=key)

    def get(self, item: int) -> Item | None:
        """Return one item by its id."""
        with self._database.reading() as tx:
            return tx.row(Item, "item", id=item)

    def body(self, item: int, revision: int) -> bytes | None:
        """Return one body."""
        with self._database.reading() as tx:
            return read_bodies(tx, [(item, revision)]).get((item, revision))

    def life(self, item: int, limit: int = 1000) -> list[JournalRow]:
        """Return an item's journal, oldest first."""
        with self._database.reading() as tx:
            return journal.life(tx, item, limit)


def _claim_by_priority(tx: Tx, values: dict[str, Any], limit: int, share: int) -> list[Lease]:
    """Lease by priority and newest first; what is left of the limit goes to the oldest, the least urgent first."""
    leases: list[Lease] = []
    for priority in PRIORITIES:
        if (wanted := limit - share - len(leases)) > 0:
            leases += tx.rows(Lease, "claim_items", **values, priority=priority, limit=wanted)
    # If fewer were found, nothing else is due and the oldest are among them.
    if len(leases) == limit - share:
        # Urgent items are reached by the loop above anyway; old bulk is what would starve.
        for priority in reversed(PRIORITIES):
            if (wanted := limit - len(leases)) > 0:
                leases += tx.rows(Lease, "claim_oldest_items", **values, priority=priority, limit=wanted)
    return leases


def accepted_bodies(tx: Tx, pipeline: str, refs: Sequence[str]) -> dict[str, bytes]:
    """Return the accepted bodies of items by ref."""
    found: dict[str, tuple[int, int]] = {}
    for name in refs:
        item = _named_item(tx, pipeline, name)
        if item is not None and item.accepted_revision is not None:
            found[name] = (item.id, item.accepted_revision)
    bodies = read_bodies(tx, list(dict.fromkeys(found.values())))
    return {name: bodies[revision] for name, revision in found.items() if revision in bodies}


def _named_item(tx: Tx, pipeline: str, name: str) -> Item | None:
    """Return the item of a ref, or the one that stands above it."""
    item, relation = split_above(name)
    if relation:
        above = tx.rows(ParentRow, "parents", pipeline=pipeline, relation=relation, child=item)
        item = above[0].parent if above else TOP
    kind, key = split_ref(item)
    return tx.row(Item, "find_item", pipeline=pipeline, kind=kind, key=key)


def read_bodies(tx: Tx, revisions: Sequence[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
    """Return bodies by item and revision."""
    return {(row.item, row.revision): bytes(row.body) for row in tx.returning(BodyRow, "read_bodies", revisions)}
