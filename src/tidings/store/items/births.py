"""Findings become items, or new revisions of items. The merge and the settle (children) share these rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.model.item import Finding, JournalKind, LogRow
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import Workflow
from tidings.store.db.database import Tx
from tidings.store.items import journal
from tidings.store.tombstones import Buried, Name, drop_tombstones, find_buried, is_final

UNKNOWN_STATE = "unknown"


class Arrival(NamedTuple):
    """A finding with its place in the log (0 for children)."""

    finding: Finding
    intake_id: int


def arrivals(pipeline: str, rows: Iterable[LogRow]) -> list[Arrival]:
    """Make findings of rows of the log."""
    return [
        Arrival(Finding(pipeline, row.kind, row.key, row.fingerprint, bytes(row.payload), row.priority), row.id)
        for row in rows
    ]


class Known(NamedTuple):
    """What the store knows of a key, under the number it was looked up by."""

    number: int
    id: int
    fingerprint: str
    revision: int
    accepted_revision: int | None
    waiting_revision: int | None
    lease_until: int | None
    intake_id: int
    state: str
    standing: str

    @property
    def next_revision(self) -> int:
        """The number of the revision that comes next."""
        return max(self.revision, self.waiting_revision or 0) + 1


class NewItem(NamedTuple):
    """A row of `insert_items`; the number keeps the order of the log."""

    number: int
    pipeline: str
    kind: str
    key: str
    fingerprint: str
    state: str
    standing: str
    lane: str | None
    priority: int
    intake_id: int


class NewId(NamedTuple):
    """The id an item was given."""

    id: int
    kind: str
    key: str


class Restart(NamedTuple):
    """A row of `restart_items`."""

    id: int
    fingerprint: str
    revision: int
    state: str
    standing: str
    lane: str | None
    priority: int
    intake_id: int


class Waiting(NamedTuple):
    """A row of `set_waiting_revisions`."""

    id: int
    fingerprint: str
    waiting_revision: int
    intake_id: int


class NewBody(NamedTuple):
    """A row of `put_bodies`."""

    item: int
    revision: int
    body: bytes


@dataclass(slots=True)
class Births:
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


def bear(tx: Tx, pipelines: Mapping[str, Pipeline], arrivals: Sequence[Arrival]) -> Births:
    """Write a batch of findings of one pipeline, in order, as items and revisions."""
    births = Births()
    for batch in _distinct_batches(arrivals):
        _bear_distinct(tx, pipelines, batch, births)
    return births


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


def _bear_distinct(tx: Tx, pipelines: Mapping[str, Pipeline], batch: list[Arrival], births: Births) -> None:
    names = [Name(n, a.finding.pipeline, a.finding.kind, a.finding.key) for n, a in enumerate(batch)]
    known = {item.number: item for item in tx.returning(Known, "look_up_items", names)}
    buried = find_buried(tx, [name for name in names if name.number not in known])
    new: list[Arrival] = []
    reborn: list[Finding] = []
    restarts: list[tuple[Known, Arrival]] = []
    waits: list[tuple[Known, Arrival]] = []
    touched: list[tuple[int, int]] = []
    for number, arrival in enumerate(batch):
        item = known.get(number)
        tombstone = buried.get(number)
        if item is None and tombstone is not None and _stays_buried(pipelines, tombstone, arrival):
            births.unchanged += 1
        elif item is None:
            new.append(arrival)
            if tombstone is not None:
                reborn.append(arrival.finding)
        elif arrival.intake_id and arrival.intake_id <= item.intake_id:
            births.unchanged += 1  # merged before; the checkpoint was lost or foreign
        elif item.fingerprint == arrival.finding.fingerprint:
            births.unchanged += 1
            if arrival.intake_id:
                touched.append((item.id, arrival.intake_id))
        else:
            (waits if _must_wait(pipelines, item, arrival.finding) else restarts).append((item, arrival))
    # Nothing changed, but the item must remember the finding: if the log is merged again, it is known as merged.
    tx.put("touch_intake_ids", touched)
    drop_tombstones(tx, reborn)
    _insert(tx, pipelines, new, births)
    _restart(tx, pipelines, restarts, births)
    _let_wait(tx, waits, births)


def _stays_buried(pipelines: Mapping[str, Pipeline], tombstone: Buried, arrival: Arrival) -> bool:
    """Tell whether a finding brings nothing new of an item that was removed."""
    finding, intake_id = arrival
    if intake_id and intake_id <= tombstone.intake_id:
        return True  # merged before its item was removed; the log is being read again
    return finding.fingerprint == tombstone.fingerprint or is_final(pipelines, finding.pipeline, finding.kind)


def _must_wait(pipelines: Mapping[str, Pipeline], item: Known, finding: Finding) -> bool:
    """Tell whether a revision waits for the one before it: under a lease always, else as the workflow says."""
    if item.lease_until is not None:
        return True
    workflow = workflow_of(pipelines, finding.pipeline, finding.kind)
    if workflow is None:
        # A part of the deployment is older than the rest. A copy that was never worked on must not be replaced unread.
        return item.state == UNKNOWN_STATE
    return not workflow.gives_way(item.state, item.standing, is_accepted=item.accepted_revision == item.revision)


def workflow_of(pipelines: Mapping[str, Pipeline], pipeline: str, kind: str) -> Workflow | None:
    """Return the workflow that items of a kind follow, or None for a kind that no pipeline here declares."""
    declared = pipelines.get(pipeline)
    return declared.workflows.get(kind) if declared else None


class Beginning(NamedTuple):
    """Where an item begins."""

    state: str
    standing: str
    lane: str | None


def beginning(pipelines: Mapping[str, Pipeline], pipeline: str, kind: str) -> Beginning:
    """Return where an item of a kind begins; an unknown kind is parked."""
    workflow = workflow_of(pipelines, pipeline, kind)
    if workflow is None:
        return Beginning(UNKNOWN_STATE, "parked", None)
    lane = workflow.lane_of(workflow.start)
    return Beginning(workflow.start, workflow.standing_in(workflow.start, due=lane is not None), lane)


def _insert(tx: Tx, pipelines: Mapping[str, Pipeline], new: list[Arrival], births: Births) -> None:
    if not new:
        return
    starts = {a.finding.kind: beginning(pipelines, a.finding.pipeline, a.finding.kind) for a in new}
    rows = [
        NewItem(
            number, each.pipeline, each.kind, each.key, each.fingerprint, *starts[each.kind], each.priority, intake_id
        )
        for number, (each, intake_id) in enumerate(new)
    ]
    ids = {(row.kind, row.key): row.id for row in tx.returning(NewId, "insert_items", rows)}
    born = [(ids[each.kind, each.key], each) for each, _ in new if (each.kind, each.key) in ids]
    tx.put("insert_bodies", [NewBody(item, 1, finding.payload) for item, finding in born])
    # Only what came through the log has a place in it.
    origin: JournalKind = "born" if new[0].intake_id else "adopted"
    journal.write(tx, [journal.Entry(item, origin, 0, 0, "", starts[each.kind].state, "born") for item, each in born])
    births.born.extend(born)
    # Another transaction bore the same child at the same moment: by now it is known.
    if late := [arrival for arrival in new if (arrival.finding.kind, arrival.finding.key) not in ids]:
        _bear_distinct(tx, pipelines, late, births)


def _restart(tx: Tx, pipelines: Mapping[str, Pipeline], restarts: list[tuple[Known, Arrival]], births: Births) -> None:
    if not restarts:
        return
    rows, bodies, entries = [], [], []
    for item, (finding, intake_id) in restarts:
        start = beginning(pipelines, finding.pipeline, finding.kind)
        place = intake_id or item.intake_id
        rows.append(Restart(item.id, finding.fingerprint, item.next_revision, *start, finding.priority, place))
        bodies.append(NewBody(item.id, item.next_revision, finding.payload))
        entries.append(journal.Entry(item.id, "changed", 0, 0, item.state, start.state, "changed"))
        births.change(item, finding)
    tx.put("restart_items", rows)
    tx.put("put_bodies", bodies)
    tx.put("drop_other_bodies", [(item.id,) for item, _ in restarts])
    journal.write(tx, entries)


def _let_wait(tx: Tx, waits: list[tuple[Known, Arrival]], births: Births) -> None:
    if not waits:
        return
    rows, bodies = [], []
    for item, (finding, intake_id) in waits:
        rows.append(Waiting(item.id, finding.fingerprint, item.next_revision, intake_id or item.intake_id))
        bodies.append(NewBody(item.id, item.next_revision, finding.payload))
        births.change(item, finding)
    tx.put("set_waiting_revisions", rows)
    tx.put("put_bodies", bodies)
    tx.put("drop_other_bodies", [(item.id,) for item, _ in waits])
