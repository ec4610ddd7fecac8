"""Burials: how an item is removed with all that is its own, and what is left of it.

A tombstone keeps it from being born again, and one line of the journal tells when and why it went. Both are forgotten
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tidings.model.clock import DAY_MS
from tidings.model.item import ref
from tidings.model.pipeline import Pipeline
from tidings.store.cards import drop_shown
from tidings.store.db.database import Tx
from tidings.store.items import journal
from tidings.store.links import drop_links

TOMBSTONE_DAYS = 90


class Leaving(NamedTuple):
    """An item that is about to be removed, as it was seen."""

    id: int
    pipeline: str
    kind: str
    key: str
    fingerprint: str
    token: int
    state: str
    standing: str
    error: str | None


class Deleted(NamedTuple):
    """An item that was removed, and the last finding of the log that had been merged into it."""

    id: int
    intake_id: int


def bury(
    tx: Tx,
    pipelines: Mapping[str, Pipeline],
    leaving: Sequence[Leaving],
    *,
    reason: str,
    forget_days: float | None = None,
) -> list[Leaving]:
    """Delete items that are as they were seen, and all that is theirs; leave tombstones. Return those that went.

    Where the pipeline has an id index the caller holds the merge's lock, and takes the ids out of it.
    """
    deleted = tx.returning(Deleted, "delete_items", [(item.id, item.token) for item in leaving]) if leaving else []
    intake_ids = {item.id: item.intake_id for item in deleted}
    gone = [item for item in leaving if item.id in intake_ids]
    if not gone:
        return []
    ids = [(item.id,) for item in gone]
    tx.put("delete_bodies", ids)
    tx.put("delete_journal", ids)
    journal.write(tx, [_last_line(item, reason) for item in gone])
    drop_links(tx, [(item.pipeline, ref(item.kind, item.key)) for item in gone])
    drop_shown(tx, [item.id for item in gone])
    tx.put("insert_tombstones", [_tombstone(pipelines, item, intake_ids[item.id], forget_days) for item in gone])
    return gone


def _last_line(item: Leaving, reason: str) -> journal.Entry:
    how = f"{item.standing} in {item.state}"
    told = f"{reason}; it was {how}{f': {item.error}' if item.error else ''}"[: journal.ERROR_CHARS_MAX]
    return journal.Entry(item.id, "retired", item.token, 0, item.state, item.state, "retired", told)


def _tombstone(
    pipelines: Mapping[str, Pipeline], item: Leaving, intake_id: int, forget_days: float | None
) -> tuple[Any, ...]:
    if forget_days is None:
        declared = pipelines.get(item.pipeline)
        forget_days = declared.tombstone_days if declared else TOMBSTONE_DAYS
    return (item.pipeline, item.kind, item.key, item.fingerprint, intake_id, round(forget_days * DAY_MS), item.id)
