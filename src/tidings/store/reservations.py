"""Reservations: stretches of the log that workers run before their items are born.

An item that is merged, claimed and settled is written three times; one that is run first is written once, where its
first attempt left it. Each worker reserves a stretch of the log. Stretches are written in the order of the log, and the
checkpoint moves with them. If a worker dies, its stretch is merged as usual once the reservation has run out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tidings.model.item import LogRow
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Merged, Reservation
from tidings.store.db.database import Tx
from tidings.store.first_cards import put_first_cards
from tidings.store.items.births import arrivals, bear
from tidings.store.tombstones import Name, find_buried

ABANDONED_BATCH = 500


class Stretch(NamedTuple):
    """A reserved stretch of the log: it ends with the finding `through`."""

    id: int
    through: int
    left_ms: int


class Granted(NamedTuple):
    """The number of a reservation, and when it was made."""

    id: int
    granted_at: int


class DrawnId(NamedTuple):
    """The id of an item to be."""

    id: int


class Fingerprint(NamedTuple):
    """The fingerprint of a name that was looked up by a number."""

    number: int
    fingerprint: str


def checkpoint(tx: Tx, pipeline: str) -> int:
    """Return the id of the last merged finding; 0 where the stored one does not belong to this log.

    Trimming takes a finding only together with all before it. A checkpoint that is not in the log while older findings
    are is not ours: merging from the start skips nothing, and what each item remembers of the log keeps anything from
    being merged twice.
    """
    return int(tx.value("checkpoint", pipeline=pipeline) or 0)


def stretches(tx: Tx, pipeline: str) -> list[Stretch]:
    """Return the reserved stretches of a pipeline's log, in order."""
    return tx.rows(Stretch, "reservations", pipeline=pipeline)


def reserve(
    tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, rows: Sequence[LogRow], lease_ms: int
) -> Reservation | None:
    """Reserve a stretch of the log, if any of its findings can be run before its item is born."""
    declared = pipelines.get(pipeline)
    # A first card is shown by the merge, at once. Run before birth, the item would appear only with the end of its run.
    if declared is None or declared.first_cards:
        return None
    starts = {kind: workflow.start for kind, workflow in declared.workflows.items() if workflow.begins_pure}
    fresh = _fresh(tx, pipeline, [row for row in rows if row.kind in starts])
    if not fresh:
        return None
    granted = tx.row(Granted, "insert_reservation", pipeline=pipeline, through=rows[-1].id, lease_ms=lease_ms)
    assert granted is not None
    until = granted.granted_at + lease_ms
    return Reservation(pipeline, granted.id, fresh, _draw_ids(tx, len(fresh)), starts, granted.granted_at, until)


def _fresh(tx: Tx, pipeline: str, rows: Sequence[LogRow]) -> list[LogRow]:
    """Return the findings whose keys are new and stand only once among them."""
    times = Counter([(row.kind, row.key) for row in rows])
    # Two findings of one key are two revisions, in order. Only the merge makes those.
    if len(times) < len(rows):
        rows = [row for row in rows if times[row.kind, row.key] == 1]
    names = [Name(number, pipeline, row.kind, row.key) for number, row in enumerate(rows)]
    known = {each.number for each in tx.returning(Fingerprint, "known_fingerprints", names)}
    known |= find_buried(tx, names).keys()
    return [row for number, row in enumerate(rows) if number not in known]


def _draw_ids(tx: Tx, count: int) -> Sequence[int]:
    """Draw ids for items to be. PostgreSQL returns each, since others draw in between; SQLite returns the last one."""
    ids = [drawn.id for drawn in tx.rows(DrawnId, "draw_item_ids", count=count)]
    return ids if len(ids) == count else range(ids[-1] - count + 1, ids[-1] + 1)


def finish(
    tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, stretch: Stretch, written: Collection[int]
) -> Merged:
    """Merge what a stretch holds besides the findings that were run and written; move the checkpoint past it."""
    bounds = {"pipeline": pipeline, "after": checkpoint(tx, pipeline), "through": stretch.through}
    count: int = tx.value("count_between", **bounds)
    # Mostly every finding was run and written, and the stretch need not be read a second time.
    rows = tx.rows(LogRow, "findings_between", **bounds, limit=count) if count > len(written) else []
    rest = merge(tx, pipelines, pipeline, [row for row in rows if row.id not in written])
    tx.run("drop_reservation", id=stretch.id)
    tx.run("move_checkpoint", pipeline=pipeline, checkpoint=stretch.through)
    return Merged(count, rest.born + len(written), rest.changed, rest.unchanged, stretch.through)


def merge(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, rows: Sequence[LogRow]) -> Merged:
    """Turn findings, in log order, into items, with first cards where it has any. The caller moves the checkpoint."""
    if not rows:
        return Merged()
    births = bear(tx, pipelines, arrivals(pipeline, rows))
    declared, unlisted = pipelines.get(pipeline), tuple[int, ...]()
    if declared is not None and declared.first_cards:
        unlisted = put_first_cards(tx, declared, births.born, births.unseen)
    return Merged(len(rows), len(births.born), len(births.changed), births.unchanged, rows[-1].id, unlisted)


def merge_next(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, rows: Sequence[LogRow]) -> Merged:
    """Merge the next findings of the log, and move the checkpoint past them."""
    merged = merge(tx, pipelines, pipeline, rows)
    if rows:
        tx.run("move_checkpoint", pipeline=pipeline, checkpoint=rows[-1].id)
    return merged


def merge_abandoned(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, own: int = 0) -> Merged:
    """Merge findings of the first stretch, if it has run out and is not `own`; some hundreds at a time.

    Its worker may have vanished because of one of these findings, so each gets attempts of its own. A settle that waits
    for the stretch does this too: all places of a process may be taken by stretches that wait.
    """
    first = next(iter(stretches(tx, pipeline)), None)
    if first is None or first.left_ms > 0 or first.id == own:
        return Merged()
    bounds = {"after": checkpoint(tx, pipeline), "through": first.through}
    rows = tx.rows(LogRow, "findings_between", pipeline=pipeline, **bounds, limit=ABANDONED_BATCH)
    if not rows or rows[-1].id == first.through:
        tx.run("drop_reservation", id=first.id)
    return merge_next(tx, pipelines, pipeline, rows)
