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

from tidings.model.item import Finding, Lease, ref
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Ahead, Settlement
from tidings.model.workflow import PURE
from tidings.store.adopting import Adopted, Arrival, adopt, find_buried
from tidings.store.awaiting import awaiting, wake_for, wake_late
from tidings.store.database import Batch, Preparing, Tx
from tidings.store.effects import bear_children, journal_row, shown_row, trouble
from tidings.store.links import link_rows
from tidings.store.shelving import Showing, prepare_presentations, write_presentations

TOKEN = 1
"""Whoever runs ahead has the first right to an item."""


def take(
    tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, arrivals: Sequence[Arrival], lease_ms: int
) -> Ahead | None:
    """Take the right to run what of a batch can be run ahead, if anything can."""
    declared = pipelines.get(pipeline)
    if declared is None or declared.first_cards:
        return None
    starts = {kind: workflow.start for kind, workflow in declared.workflows.items() if workflow.runs_ahead}
    fresh = _fresh(tx, arrivals, starts)
    if not fresh:
        return None
    row = tx.one("insert_ahead", pipeline=pipeline, through=arrivals[-1].intake_id, lease_ms=lease_ms)
    assert row is not None
    token, now = row
    ids, until = _draw_ids(tx, len(fresh)), now + lease_ms
    leases = [_lease(f, starts[f.kind], item, now, until) for (f, _), item in zip(fresh, ids, strict=True)]
    places = [place for _, place in fresh]
    return Ahead(pipeline, token, list(arrivals), leases, places)


def _draw_ids(tx: Tx, count: int) -> Sequence[int]:
    rows = tx.all("draw_item_ids", count=count)
    return range(rows[0][0] - count + 1, rows[0][0] + 1) if tx.dialect == "sqlite" else [row[0] for row in rows]


def _fresh(tx: Tx, arrivals: Sequence[Arrival], kinds: Mapping[str, str]) -> list[Arrival]:
    """Return the findings of some kinds that nobody knows, each key once."""
    fresh = [arrival for arrival in arrivals if arrival.finding.kind in kinds]
    times = Counter([(f.kind, f.key) for f, _ in fresh])
    if len(times) < len(fresh):
        fresh = [arrival for arrival in fresh if times[arrival.finding.kind, arrival.finding.key] == 1]
    names = [(n, f.pipeline, f.kind, f.key) for n, (f, _) in enumerate(fresh)]
    known = {row[0] for row in tx.many("known_fingerprints", names)}
    known |= find_buried(tx, names)
    return [arrival for n, arrival in enumerate(fresh) if n not in known] if known else fresh


def _lease(finding: Finding, state: str, item: int, now: int, until: int) -> Lease:
    return Lease(
        item, finding.pipeline, finding.kind, finding.key, state, TOKEN, 1, 1, finding.priority, now, until,
        None, 0, now, finding.payload, None, PURE,
    )  # fmt: skip


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
    found = {place: finding for finding, place in ahead.arrivals}
    places = dict(zip((lease.id for lease in ahead.leases), ahead.places, strict=True))
    ran = [(s, places[s.id], found[places[s.id]]) for s in settlements]
    links = [row for s in settlements for row in link_rows(s.pipeline, ref(s.kind, s.key), s.links or ())]
    return Birth(
        list(settlements),
        frozenset(place for _, place, _ in ran),
        ready.prepare("insert_run_item", [_item_row(s, place, finding) for s, place, finding in ran]),
        (
            ready.prepare("put_body", [(s.id, 1, s.body or f.payload) for s, _, f in ran], is_fresh=True),
            ready.prepare("insert_journal", [journal_row(s, "born") for s in settlements]),
            ready.prepare("insert_link", links, is_fresh=True),
        ),
        prepare_presentations(ready, pipeline, [shown_row(s) for s in settlements if s.presents], are_fresh=True),
        awaiting(settlements),
    )


def _item_row(s: Settlement, place: int, finding: Finding) -> tuple[Any, ...]:
    error, cause = trouble(s)
    return (
        s.id, s.pipeline, s.kind, s.key, finding.fingerprint, s.state, s.standing, s.lane, finding.priority, s.due_at,
        s.delay_ms, s.attempts, s.token, 1 if s.accepts else None, place, error, cause, s.failing_since,
    )  # fmt: skip


def _without_known(tx: Tx, pipeline: Pipeline, ahead: Ahead, birth: Birth) -> Birth:
    """Leave out what was born since the batch was taken: an earlier batch had the same key."""
    names = [(n, s.pipeline, s.kind, s.key) for n, s in enumerate(birth.settlements)]
    known = {row[0] for row in tx.many("known_fingerprints", names)}
    return prepare(tx, pipeline, ahead, [s for n, s in enumerate(birth.settlements) if n not in known])


def bear(
    tx: Tx, pipelines: Mapping[str, Pipeline], ahead: Ahead, birth: Birth | None
) -> tuple[Adopted, list[Settlement]]:
    """Give birth to what was run; merge the rest of the batch, or what exists by now, as usual.

    Return what became of the batch, and the runs that were written.
    """
    if birth is not None and birth.settlements and not tx.changes_all(birth.items):
        birth = _without_known(tx, pipelines[ahead.pipeline], ahead, birth)
        if birth.settlements and not tx.changes_all(birth.items):
            birth = None
    if birth is None or not birth.settlements:
        return adopt(tx, pipelines, [Arrival(*arrival) for arrival in ahead.arrivals]), []
    for batch in birth.rows:
        tx.write(batch)
    write_presentations(tx, birth.shown)
    bear_children(tx, pipelines, birth.settlements)
    woken = wake_for(tx, pipelines, [(s.pipeline, s.kind, s.key) for s in birth.settlements])
    woken += wake_late(tx, pipelines, birth.awaiting, {s.id: 0 for s in birth.awaiting})
    rest = [Arrival(*arrival) for arrival in ahead.arrivals if arrival[1] not in birth.places]
    adopted = adopt(tx, pipelines, rest)
    adopted.woken += woken
    return adopted, birth.settlements
