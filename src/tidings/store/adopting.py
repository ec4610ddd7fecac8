"""Findings become items or new revisions of items; the merge and the settle (children) share these rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.model.item import Finding
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import LogRow
from tidings.model.workflow import Workflow
from tidings.store.database import Row, Tx
from tidings.store.tombstones import Buried, drop_tombstones, find_buried, is_final

UNKNOWN_STATE = "unknown"


class Arrival(NamedTuple):
    """A finding with its place in the log (0 for children)."""

    finding: Finding
    intake_id: int


def arrivals(pipeline: str, rows: Sequence[LogRow]) -> list[Arrival]:
    """Make findings of rows of the log."""
    return [Arrival(Finding(pipeline, k, y, f, bytes(p), r), n) for n, k, y, f, r, p in rows]


class Known(NamedTuple):
    """What the store knows of a key."""

    id: int
    fingerprint: str
    revision: int
    accepted_revision: int | None
    waiting_revision: int | None
    is_leased: bool
    intake_id: int
    state: str
    standing: str


class Held(NamedTuple):
    """What the end of a lease, or a move by hand, found waiting: the columns those statements return."""

    id: int
    waiting_revision: int | None
    fingerprint: str
    priority: int
    intake_id: int
    revision: int
    accepted_revision: int | None


class Ended(NamedTuple):
    """An item that nobody holds any longer, and where that left it."""

    pipeline: str
    kind: str
    state: str
    standing: str
    held: Held


@dataclass(slots=True)
class Adopted:
    """What became of a batch of findings."""

    born: list[tuple[int, Finding]] = field(default_factory=list)
    changed: list[tuple[int, Finding]] = field(default_factory=list)
    unseen: list[tuple[int, Finding]] = field(default_factory=list)
    """Those of the changed of which nothing was ever accepted: readers see their first card."""
    unchanged: int = 0

    def change(self, item: Known, finding: Finding) -> None:
        """Note a new revision."""
        self.changed.append((item.id, finding))
        if item.accepted_revision is None:
            self.unseen.append((item.id, finding))


def adopt(tx: Tx, pipelines: Mapping[str, Pipeline], arrivals: Sequence[Arrival]) -> Adopted:
    """Write a batch of findings, in order, as items and revisions. All are of one pipeline."""
    adopted = Adopted()
    for batch in _distinct_batches(arrivals):
        _adopt_distinct(tx, pipelines, batch, adopted)
    return adopted


def _distinct_batches(arrivals: Sequence[Arrival]) -> list[list[Arrival]]:
    """Split so that no key occurs twice in a batch: a second finding must see what the first one made."""
    batches: list[list[Arrival]] = [[]]
    seen: set[tuple[str, str]] = set()
    for arrival in arrivals:
        name = (arrival.finding.kind, arrival.finding.key)
        if name in seen:
            batches.append([])
            seen = set()
        seen.add(name)
        batches[-1].append(arrival)
    return batches


def _adopt_distinct(tx: Tx, pipelines: Mapping[str, Pipeline], batch: list[Arrival], adopted: Adopted) -> None:
    names = [(n, a.finding.pipeline, a.finding.kind, a.finding.key) for n, a in enumerate(batch)]
    known = {row[0]: _known(row) for row in tx.many("look_up_item", names)}
    buried = find_buried(tx, [name for name in names if name[0] not in known])
    new: list[Arrival] = []
    reborn: list[Finding] = []
    restarts: list[tuple[Known, Arrival]] = []
    waits: list[tuple[Known, Arrival]] = []
    touched: list[tuple[int, int]] = []
    for number, arrival in enumerate(batch):
        item = known.get(number)
        tombstone = buried.get(number)
        if item is None and tombstone is not None and _stays_buried(pipelines, tombstone, arrival):
            adopted.unchanged += 1
        elif item is None:
            new.append(arrival)
            if tombstone is not None:
                reborn.append(arrival.finding)
        elif arrival.intake_id and arrival.intake_id <= item.intake_id:
            adopted.unchanged += 1  # merged before; the checkpoint was lost or foreign
        elif item.fingerprint == arrival.finding.fingerprint:
            adopted.unchanged += 1
            if arrival.intake_id:
                touched.append((item.id, arrival.intake_id))
        else:
            (waits if _must_wait(pipelines, item, arrival.finding) else restarts).append((item, arrival))
    if touched:
        tx.many("touch_intake_id", touched)
    drop_tombstones(tx, reborn)
    _insert(tx, pipelines, new, adopted)
    _restart(tx, pipelines, restarts, adopted)
    _let_wait(tx, waits, adopted)


def _stays_buried(pipelines: Mapping[str, Pipeline], tombstone: Buried, arrival: Arrival) -> bool:
    """Tell whether a finding brings nothing new of an item that was removed."""
    finding, intake_id = arrival
    if intake_id and intake_id <= tombstone.intake_id:
        return True  # merged before its item was removed; the log is being read again
    return finding.fingerprint == tombstone.fingerprint or is_final(pipelines, finding.pipeline, finding.kind)


def _must_wait(pipelines: Mapping[str, Pipeline], item: Known, finding: Finding) -> bool:
    """Tell whether a revision waits for the one before it: under a lease always, else as the workflow says."""
    if item.is_leased:
        return True
    workflow = _workflow(pipelines, finding.pipeline, finding.kind)
    if workflow is None:
        # A part of the deployment is older than the rest. What nobody has read yet must not be replaced by a newer one.
        return item.state == UNKNOWN_STATE
    return not workflow.gives_way(item.state, item.standing, is_accepted=item.accepted_revision == item.revision)


def _workflow(pipelines: Mapping[str, Pipeline], pipeline: str, kind: str) -> Workflow | None:
    declared = pipelines.get(pipeline)
    return declared.workflows.get(kind) if declared else None


def _known(row: Row) -> Known:
    _, item, fingerprint, revision, accepted, waiting, lease_until, intake_id, state, standing = row
    return Known(item, fingerprint, revision, accepted, waiting, lease_until is not None, intake_id, state, standing)


def beginning(pipelines: Mapping[str, Pipeline], pipeline: str, kind: str) -> tuple[str, str, str | None]:
    """Return the state, standing and lane in which an item of a kind begins; an unknown kind is parked."""
    declared = pipelines.get(pipeline)
    workflow = declared.workflows.get(kind) if declared else None
    if workflow is None:
        return UNKNOWN_STATE, "parked", None
    lane = workflow.lane_of(workflow.start)
    return workflow.start, workflow.standing_in(workflow.start, due=lane is not None), lane


def _insert(tx: Tx, pipelines: Mapping[str, Pipeline], new: list[Arrival], adopted: Adopted) -> None:
    if not new:
        return
    starts = {a.finding.kind: beginning(pipelines, a.finding.pipeline, a.finding.kind) for a in new}
    rows = []
    for finding, intake_id in new:
        state, standing, lane = starts[finding.kind]
        rows.append(
            (
                finding.pipeline,
                finding.kind,
                finding.key,
                finding.fingerprint,
                state,
                standing,
                lane,
                finding.priority,
                intake_id,
            )
        )
    ids = {(kind, key): item for item, kind, key in tx.many("insert_item", rows)}
    born = [(ids[f.kind, f.key], f) for f, _ in new if (f.kind, f.key) in ids]
    tx.many("put_body", [(item, 1, finding.payload) for item, finding in born])
    origin = "born" if new[0].intake_id else "adopted"
    tx.many(
        "insert_journal",
        [(item, origin, 0, 0, "", starts[f.kind][0], "born", None, None, None) for item, f in born],
    )
    adopted.born.extend(born)
    # Somebody else bore the same child at this very moment: now it is known.
    if late := [arrival for arrival in new if (arrival.finding.kind, arrival.finding.key) not in ids]:
        _adopt_distinct(tx, pipelines, late, adopted)


def _restart(
    tx: Tx, pipelines: Mapping[str, Pipeline], restarts: list[tuple[Known, Arrival]], adopted: Adopted
) -> None:
    if not restarts:
        return
    rows, bodies, journal = [], [], []
    for item, (finding, intake_id) in restarts:
        state, standing, lane = beginning(pipelines, finding.pipeline, finding.kind)
        revision = max(item.revision, item.waiting_revision or 0) + 1
        rows.append(
            (
                item.id,
                finding.fingerprint,
                revision,
                state,
                standing,
                lane,
                finding.priority,
                intake_id or item.intake_id,
            )
        )
        bodies.append((item.id, revision, finding.payload))
        journal.append((item.id, "changed", 0, 0, item.state, state, "changed", None, None, None))
        adopted.change(item, finding)
    tx.many("restart_item", rows)
    tx.many("put_body", bodies)
    tx.many("drop_other_bodies", [(item.id,) for item, _ in restarts])
    tx.many("insert_journal", journal)


def _let_wait(tx: Tx, waits: list[tuple[Known, Arrival]], adopted: Adopted) -> None:
    if not waits:
        return
    rows, bodies = [], []
    for item, (finding, intake_id) in waits:
        revision = max(item.revision, item.waiting_revision or 0) + 1
        rows.append((item.id, finding.fingerprint, revision, intake_id or item.intake_id))
        bodies.append((item.id, revision, finding.payload))
        adopted.change(item, finding)
    tx.many("set_waiting_revision", rows)
    tx.many("put_body", bodies)
    tx.many("drop_other_bodies", [(item.id,) for item, _ in waits])


def begin_waiting(tx: Tx, pipelines: Mapping[str, Pipeline], ended: Iterable[Ended]) -> None:
    """Begin the revisions that waited for items nobody holds any longer, where the current one gives way."""
    due = [each for each in ended if _begins_waiting(pipelines, each)]
    if not due:
        return
    first = _first_in_turn(tx, pipelines, due)
    rows, journal, later = [], [], []
    for pipeline, kind, state_now, _, held in due:
        state, standing, lane = beginning(pipelines, pipeline, kind)
        revision = first.get(held.id, held.waiting_revision)
        rows.append((held.id, held.fingerprint, revision, state, standing, lane, held.priority, held.intake_id))
        journal.append((held.id, "changed", 0, 0, state_now, state, "changed", None, None, None))
        if revision != held.waiting_revision:
            later.append((held.id, held.fingerprint, held.waiting_revision, held.intake_id))
    tx.many("restart_item", rows)
    if later:
        tx.many("set_waiting_revision", later)
    tx.many("drop_other_bodies", [(row[0],) for row in rows])
    tx.many("insert_journal", journal)


def _begins_waiting(pipelines: Mapping[str, Pipeline], ended: Ended) -> bool:
    """Tell whether a newer revision waits, and the current one gives way to it."""
    held = ended.held
    if held.waiting_revision is None:
        return False
    workflow = _workflow(pipelines, ended.pipeline, ended.kind)
    is_accepted = held.accepted_revision == held.revision
    return workflow is None or workflow.gives_way(ended.state, ended.standing, is_accepted=is_accepted)


def _first_in_turn(tx: Tx, pipelines: Mapping[str, Pipeline], due: Sequence[Ended]) -> dict[int, int]:
    """Return, by item, the oldest revision that waits, where copies take turns; elsewhere the newest counts."""
    in_turn = [
        (each.held.id,) for each in due if getattr(_workflow(pipelines, each.pipeline, each.kind), "in_turn", False)
    ]
    return dict(tx.many("next_waiting", in_turn)) if in_turn else {}
