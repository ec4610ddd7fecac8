"""Running ahead: findings whose workflow begins with pure steps are run first, and born where these leave them.

An item that is merged, claimed and settled is written three times; one that is run ahead is written once. Each worker
takes a batch of the log; batches are written in the order of the log, and the checkpoint moves with them. If a worker
dies, its batch is merged the ordinary way once its right has run out, and each item gets attempts of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.model.item import ref
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Ahead, LogRow, Settlement
from tidings.store.adopting import Adopted, adopt, arrivals
from tidings.store.awaiting import awaiting, wake_for, wake_late
from tidings.store.database import Batch, Preparing, Tx
from tidings.store.effects import bear_children, journal_row, parents, shown_row, trouble
from tidings.store.links import link_rows
from tidings.store.shelving import Showing, prepare_presentations, write_presentations
from tidings.store.tombstones import find_buried


def take(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, rows: list[LogRow], lease_ms: int) -> Ahead | None:
    """Take the right to run what of a batch can be run ahead, if anything can."""
    declared = pipelines.get(pipeline)
    if declared is None or declared.first_cards:
        return None
    starts = {kind: workflow.start for kind, workflow in declared.workflows.items() if workflow.runs_ahead}
    chosen = _fresh(tx, pipeline, rows, starts)
    if not chosen:
        return None
    row = tx.one("insert_ahead", pipeline=pipeline, through=rows[-1][0], lease_ms=lease_ms)
    assert row is not None
    token, now = row
    return Ahead(pipeline, token, rows, chosen, _draw_ids(tx, len(chosen)), starts, now, now + lease_ms)


def _draw_ids(tx: Tx, count: int) -> Sequence[int]:
    rows = tx.all("draw_item_ids", count=count)
    return range(rows[0][0] - count + 1, rows[0][0] + 1) if tx.dialect == "sqlite" else [row[0] for row in rows]


def _fresh(tx: Tx, pipeline: str, rows: list[LogRow], kinds: Mapping[str, str]) -> list[int]:
    """Return where those findings of some kinds stand that nobody knows, each key once."""
    names = [(at, pipeline, kind, key) for at, (_, kind, key, _, _, _) in enumerate(rows) if kind in kinds]
    times = Counter([name[2:] for name in names])
    if len(times) < len(names):
        names = [name for name in names if times[name[2:]] == 1]
    known = {row[0] for row in tx.many("known_fingerprints", names)}
    known |= find_buried(tx, names).keys()
    return [name[0] for name in names if name[0] not in known]


@dataclass(frozen=True, slots=True)
class Birth:
    """What was run of a batch, ready to be written."""

    settlements: list[Settlement]
    places: frozenset[int]
    """Where their findings stand in the log."""
    items: Batch
    rows: tuple[Batch, ...]
    """Bodies, journal, links."""
    shown: Showing
    awaiting: list[Settlement]
    """Those that await somebody."""


def prepare(ready: Preparing, pipeline: Pipeline, ahead: Ahead, settlements: Sequence[Settlement]) -> Birth:
    """Make what was run ready: all that can be done before the transaction is done before it."""
    found = dict(zip(ahead.ids, map(ahead.rows.__getitem__, ahead.chosen), strict=True))
    ran = [(s, found[s.id]) for s in settlements]
    links = [row for s in settlements for row in link_rows(s.pipeline, ref(s.kind, s.key), s.links or ())]
    return Birth(
        list(settlements),
        frozenset([row[0] for _, row in ran]),
        ready.prepare("insert_run_item", [_item_row(s, row) for s, row in ran]),
        (
            ready.prepare("put_body", [(s.id, 1, s.body or row[5]) for s, row in ran], is_fresh=True),
            ready.prepare("insert_journal", [journal_row(s, "born") for s in settlements]),
            ready.prepare("insert_link", links, is_fresh=True),
        ),
        prepare_presentations(ready, pipeline, [shown_row(s) for s in settlements if s.presents], are_fresh=True),
        awaiting(settlements),
    )


def _item_row(s: Settlement, row: LogRow) -> tuple[Any, ...]:
    place, _, _, fingerprint, priority, _ = row
    error, cause = trouble(s)
    return (
        s.id, s.pipeline, s.kind, s.key, fingerprint, s.state, s.standing, s.lane, priority, s.due_at,
        s.delay_ms, s.attempts, s.token, 1 if s.accepts else None, place, error, cause, s.failing_since,
    )  # fmt: skip


def _without_known(tx: Tx, pipeline: Pipeline, ahead: Ahead, birth: Birth) -> Birth:
    """Leave out what was born since the batch was taken: an earlier batch had the same key."""
    names = [(n, s.pipeline, s.kind, s.key) for n, s in enumerate(birth.settlements)]
    known = {row[0] for row in tx.many("known_fingerprints", names)}
    return prepare(tx, pipeline, ahead, [s for n, s in enumerate(birth.settlements) if n not in known])


def bear(
    tx: Tx, pipelines: Mapping[str, Pipeline], ahead: Ahead, birth: Birth | None
) -> tuple[Adopted, list[Settlement], int]:
    """Give birth to what was run; merge the rest of the batch, or what exists by now, as usual.

    Return what became of the batch, the runs that were written, and how many items awaited one of these.
    """
    if birth is not None and birth.settlements and not tx.changes_all(birth.items):
        birth = _without_known(tx, pipelines[ahead.pipeline], ahead, birth)
        if birth.settlements and not tx.changes_all(birth.items):
            birth = None
    if birth is None or not birth.settlements:
        return adopt(tx, pipelines, arrivals(ahead.pipeline, ahead.rows)), [], 0
    for batch in birth.rows:
        tx.write(batch)
    write_presentations(tx, birth.shown)
    bear_children(tx, pipelines, parents(birth.settlements))
    woken = wake_for(tx, pipelines, ahead.pipeline, ((s.kind, s.key) for s in birth.settlements if s.accepts))
    woken += wake_late(tx, pipelines, birth.awaiting)
    rest = [row for row in ahead.rows if row[0] not in birth.places]
    return adopt(tx, pipelines, arrivals(ahead.pipeline, rest)), birth.settlements, woken
