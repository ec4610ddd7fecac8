"""Tombstones: what a removed item leaves behind, so that the same finding does not bring it back.

A finding with another fingerprint is something new and is let in, unless the workflow says that its tombstones are
final. The item that is born then takes the tombstone's place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidings.model.errors import BadInput
from tidings.model.item import Finding
from tidings.model.item_views import TombstoneView
from tidings.model.pipeline import Pipeline
from tidings.store.db.database import Database, Tx


class Remembered(NamedTuple):
    """The item of a tombstone that is forgotten; 0 for those of earlier releases."""

    item: int


class Name(NamedTuple):
    """An item's name to look up, with a number by which the caller knows the answer."""

    number: int
    pipeline: str
    kind: str
    key: str


class Buried(NamedTuple):
    """What is remembered of a removed item, under the number its name was looked up by."""

    number: int
    fingerprint: str
    intake_id: int
    """The last finding of the log that had been merged into the item; 0 for children."""


def find_buried(tx: Tx, names: Sequence[Name]) -> dict[int, Buried]:
    """Return the tombstones of those that have one, by the number of the name."""
    pipelines = {name.pipeline for name in names}
    # Most pipelines have no tombstone. One look into an index then saves a look-up for every key.
    if not any(tx.value("any_tombstone", pipeline=pipeline) for pipeline in pipelines):
        return {}
    return {stone.number: stone for stone in tx.returning(Buried, "look_up_tombstones", names)}


def is_final(pipelines: Mapping[str, Pipeline], pipeline: str, kind: str) -> bool:
    """Tell whether removed items of a kind stay removed whatever their source says."""
    declared = pipelines.get(pipeline)
    workflow = declared.workflows.get(kind) if declared else None
    return workflow is not None and workflow.tombstones_are_final


def drop_tombstones(tx: Tx, findings: Sequence[Finding]) -> None:
    """Forget tombstones whose items are born again."""
    if findings:
        names = [(finding.pipeline, finding.kind, finding.key) for finding in findings]
        forget_lines(tx, tx.returning(Remembered, "drop_tombstones", names))


def forget_lines(tx: Tx, forgotten: Sequence[Remembered]) -> int:
    """Remove the last lines of items whose tombstones are forgotten; return how many tombstones these were."""
    tx.put("delete_journal", [(stone.item,) for stone in forgotten if stone.item])
    return len(forgotten)


def forget_tombstones(tx: Tx) -> int:
    """Forget tombstones whose time is over; return how many."""
    return forget_lines(tx, tx.rows(Remembered, "forget_tombstones"))


class TombstoneStore:
    """What operators see and do about tombstones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, *, pipeline: str | None = None, key: str | None = None, limit: int = 100) -> list[TombstoneView]:
        """Return tombstones, the youngest first."""
        with self._database.reading() as tx:
            return tx.rows(TombstoneView, "tombstones", pipeline=pipeline, key=key, limit=limit)

    def lift(self, pipeline: str, *, kind: str | None = None, key: str | None = None) -> int:
        """Forget a pipeline's tombstones, or those of one kind or key: the next finding of it is taken as new."""
        if key is not None and kind is None:
            raise BadInput("a key needs its kind")
        with self._database.transaction() as tx:
            lifted = tx.rows(Remembered, "lift_tombstones", pipeline=pipeline, kind=kind, key=key)
            return forget_lines(tx, lifted)
