"""Sweeping: leases that ran out return to the queue, by the token seen. The third loss makes a dead letter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidings.model.pipeline import Pipeline
from tidings.model.publication import DELIVERY
from tidings.model.settlement import Swept
from tidings.store.db.database import Database, Tx
from tidings.store.items import journal
from tidings.store.items.births import workflow_of
from tidings.store.items.restarts import Ended, Held, begin_waiting
from tidings.store.items.settle import ItemId

LOST_LEASES_MAX = 3
POISON = "poison"


class Expired(NamedTuple):
    """A lease that ran out."""

    id: int
    pipeline: str
    kind: str
    key: str
    state: str
    token: int
    lost_leases: int
    attempts: int

    def entry(self, ended: str, error: str) -> journal.Entry:
        """Return the journal's row of a loss."""
        return journal.Entry(self.id, "swept", self.token, self.attempts, self.state, self.state, ended, error)


class Burial(NamedTuple):
    """A row of `bury_items`."""

    id: int
    token: int
    state: str
    cause: str
    error: str


def sweep(database: Database, pipelines: Mapping[str, Pipeline], limit: int) -> Swept:
    """Return up to `limit` expired leases to the queue."""
    with database.transaction() as tx:
        # Found without a lock. The statement below is guarded by the token, so a holder that renewed meanwhile keeps
        # its lease.
        expired = sorted(tx.rows(Expired, "expired_leases", limit=limit))
        rows = tx.returning(Held, "sweep_leases", [(lease.id, lease.token) for lease in expired])
        held = {row.id: row for row in rows}
        swept = [lease for lease in expired if lease.id in held]
        journal.write(tx, [lease.entry("lost", "the lease expired") for lease in swept])
        poisoned = [lease for lease in swept if _is_poisoned(pipelines, lease, held[lease.id])]
        _bury(tx, poisoned)
        # The item goes on with the copy its worker had. A newer copy that waits begins only where the workflow says
        # that the newest counts, or where the worker's copy has just become a dead letter.
        dead = {lease.id for lease in poisoned}
        begin_waiting(
            tx,
            pipelines,
            [
                Ended(lease.pipeline, lease.kind, lease.state, "dead" if lease.id in dead else "open", held[lease.id])
                for lease in swept
            ],
        )
    ambiguous = sum(1 for lease in swept if lease.kind == DELIVERY)
    return Swept(expired=len(swept), poisoned=len(poisoned), ambiguous=ambiguous)


def _is_poisoned(pipelines: Mapping[str, Pipeline], lease: Expired, held: Held) -> bool:
    """Tell whether this was the last lease an item may lose; a newer revision that replaces it starts its own count."""
    if lease.lost_leases + 1 < LOST_LEASES_MAX:
        return False
    workflow = workflow_of(pipelines, lease.pipeline, lease.kind)
    return held.waiting_revision is None or (workflow is not None and workflow.in_turn)


def _bury(tx: Tx, poisoned: list[Expired]) -> None:
    error = f"the worker vanished {LOST_LEASES_MAX} times while working on this item"
    # The sweep has just raised the tokens, and burying must name the token that stands.
    swept = [lease._replace(token=lease.token + 1) for lease in poisoned]
    burials = [Burial(lease.id, lease.token, lease.state, POISON, error) for lease in swept]
    buried = {row.id for row in tx.returning(ItemId, "bury_items", burials)}
    journal.write(tx, [lease.entry("dead", error) for lease in swept if lease.id in buried])
