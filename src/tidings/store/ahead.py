"""Running ahead: findings whose workflow begins with pure steps are run first, and born where these leave them.

An item that is merged, claimed and settled is written three times; one that is run ahead is written once. Each worker
takes a batch of the log; batches are written in the order of the log, and the checkpoint moves with them. If a worker
dies, its batch is merged the ordinary way once its right has run out, and each item gets attempts of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tidings.model.item import Finding, Lease
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Ahead, Settlement
from tidings.model.workflow import PURE
from tidings.store.adopting import Adopted, Arrival, adopt
from tidings.store.database import Tx
from tidings.store.effects import trouble, write_effects

LEASE_MS = 15_000
"""Short: while it lasts, what comes after is not written."""
TOKEN = 1
"""Whoever runs ahead has the first right to an item."""


def take(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, arrivals: Sequence[Arrival]) -> Ahead | None:
    """Take the right to run what of a batch can be run ahead, if anything can."""
    declared = pipelines.get(pipeline)
    if declared is None or declared.first_cards:
        return None
    starts = {kind: workflow.start for kind, workflow in declared.workflows.items() if workflow.runs_ahead}
    fresh = _fresh(tx, arrivals, starts)
    if not fresh:
        return None
    row = tx.one("insert_ahead", pipeline=pipeline, through=arrivals[-1].intake_id, lease_ms=LEASE_MS)
    assert row is not None
    token, now = row
    return Ahead(pipeline, token, list(arrivals), [_lease(f, starts[f.kind], now) for f, _ in fresh])


def _fresh(tx: Tx, arrivals: Sequence[Arrival], kinds: Mapping[str, str]) -> list[Arrival]:
    """Return the findings of some kinds that nobody knows, each key once."""
    times = Counter([(f.kind, f.key) for f, _ in arrivals])
    fresh = [a for a in arrivals if a.finding.kind in kinds and times[a.finding.kind, a.finding.key] == 1]
    names = [(n, a.finding.pipeline, a.finding.kind, a.finding.key) for n, a in enumerate(fresh)]
    known = {row[0] for row in tx.many("known_fingerprints", names)}
    known |= {row[0] for row in tx.many("look_up_tombstone", names)}
    return [arrival for n, arrival in enumerate(fresh) if n not in known] if known else fresh


def _lease(finding: Finding, state: str, now: int) -> Lease:
    return Lease(
        0, finding.pipeline, finding.kind, finding.key, state, TOKEN, 1, 1, finding.priority, now, now + LEASE_MS,
        None, 0, now, finding.payload, None, PURE,
    )  # fmt: skip


def bear(tx: Tx, pipelines: Mapping[str, Pipeline], ahead: Ahead, settlements: Sequence[Settlement]) -> Adopted:
    """Give birth to what was run; merge the rest of the batch, or all of it if an item exists by now, as usual."""
    ran = {(s.kind, s.key): s for s in settlements}
    born = [a for a in ahead.arrivals if (a[0].kind, a[0].key) in ran] if ran else []
    if born and not _insert(tx, born, [ran[f.kind, f.key] for f, _ in born]):
        born = []
    if born:
        held = [ran[f.kind, f.key] for f, _ in born]
        tx.many("put_body", [(s.id, 1, s.body or f.payload) for s, (f, _) in zip(held, born, strict=True)])
        tx.many(
            "insert_journal",
            [(s.id, "born", 0, 0, "", s.state_before, "born", None, None, None) for s in held],
        )
        write_effects(tx, pipelines, held, replaces=False)
    taken = {intake_id for _, intake_id in born}
    adopted = adopt(tx, pipelines, [Arrival(*a) for a in ahead.arrivals if a[1] not in taken])
    adopted.born.extend((ran[f.kind, f.key].id, f) for f, _ in born)
    return adopted


def _insert(tx: Tx, born: Sequence[tuple[Finding, int]], settlements: Sequence[Settlement]) -> bool:
    ids = tx.all("draw_item_ids", count=len(settlements))
    rows: list[tuple[Any, ...]] = []
    for (finding, intake_id), s, (item,) in zip(born, settlements, ids, strict=True):
        s.id = item
        error, cause = trouble(s)
        rows.append((
            item, s.pipeline, s.kind, s.key, finding.fingerprint, s.state, s.standing, s.lane, finding.priority,
            s.due_at, s.delay_ms, s.attempts, s.token, 1 if s.accepts else None, intake_id, error, cause,
            s.failing_since,
        ))  # fmt: skip
    if tx.changes_all("insert_run_item", rows):
        return True
    for s in settlements:
        s.id = 0
    return False
