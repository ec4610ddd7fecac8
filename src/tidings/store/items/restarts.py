"""Items that begin again: with a revision that waited, on an operator's word, or when an awaited item is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidings.model.item import AWAITS, Item, JournalKind, ref, split_ref
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Settlement
from tidings.store.db.database import Database, Tx
from tidings.store.items import journal
from tidings.store.items.births import Restart, Waiting, beginning, workflow_of


class Held(NamedTuple):
    """What the end of a lease, or a move by hand, found on the item."""

    id: int
    waiting_revision: int | None
    fingerprint: str
    priority: int
    intake_id: int
    revision: int
    accepted_revision: int | None


class Ended(NamedTuple):
    """An item that is no longer leased, and where that left it."""

    pipeline: str
    kind: str
    state: str
    standing: str
    held: Held


class WaitingRevision(NamedTuple):
    """The oldest revision of an item that waits."""

    item: int
    revision: int


class Awaiting(NamedTuple):
    """An item that awaits another: both are refs."""

    child: str
    parent: str


class LastRestart(NamedTuple):
    """Why an item was begun the last time, and by what."""

    kind: str
    actor: str | None


def begin_waiting(tx: Tx, pipelines: Mapping[str, Pipeline], ended: Iterable[Ended]) -> int:
    """Begin the revisions that waited for items no longer leased, where the current one gives way; count them."""
    due = [each for each in ended if _begins_waiting(pipelines, each)]
    if not due:
        return 0
    first = _first_in_turn(tx, pipelines, due)
    restarts, entries, later = [], [], []
    for each in due:
        held, start = each.held, beginning(pipelines, each.pipeline, each.kind)
        assert held.waiting_revision is not None
        revision = first.get(held.id, held.waiting_revision)
        restarts.append(Restart(held.id, held.fingerprint, revision, *start, held.priority, held.intake_id))
        entries.append(journal.Entry(held.id, "changed", 0, 0, each.state, start.state, "changed"))
        # `restart_items` clears the waiting revision. Where more copies wait behind this one, it is set again.
        if revision != held.waiting_revision:
            later.append(Waiting(held.id, held.fingerprint, held.waiting_revision, held.intake_id))
    tx.put("restart_items", restarts)
    tx.put("set_waiting_revisions", later)
    tx.put("drop_other_bodies", [(each.held.id,) for each in due])
    journal.write(tx, entries)
    return len(due)


def _begins_waiting(pipelines: Mapping[str, Pipeline], ended: Ended) -> bool:
    """Tell whether a newer revision waits, and the current one gives way to it."""
    held = ended.held
    if held.waiting_revision is None:
        return False
    workflow = workflow_of(pipelines, ended.pipeline, ended.kind)
    is_accepted = held.accepted_revision == held.revision
    return workflow is None or workflow.gives_way(ended.state, ended.standing, is_accepted=is_accepted)


def _first_in_turn(tx: Tx, pipelines: Mapping[str, Pipeline], due: Sequence[Ended]) -> dict[int, int]:
    """Return, by item, the oldest revision that waits, where copies take turns; elsewhere the newest counts."""
    in_turn = [
        (each.held.id,) for each in due if getattr(workflow_of(pipelines, each.pipeline, each.kind), "in_turn", False)
    ]
    return {row.item: row.revision for row in tx.returning(WaitingRevision, "next_waiting", in_turn)}


def begin_again(
    tx: Tx, pipelines: Mapping[str, Pipeline], item: int, state: str, actor: str, kind: JournalKind
) -> bool:
    """Process an item again from a state, as its newest revision; tell whether it is there.

    Where copies take turns, the one whose turn it is begins, and the others go on waiting.
    """
    found = tx.row(Item, "locked_item", id=item)
    if found is None:
        return False
    workflow = pipelines[found.pipeline].workflows[found.kind]
    revision, waiting = found.revision, found.waiting_revision
    if waiting is not None:
        state = workflow.start  # a revision that was never worked on has come past no state
        revision, waiting = (revision, waiting) if workflow.in_turn else (waiting, None)
    lane = workflow.lane_of(state)
    standing = workflow.standing_in(state, due=lane is not None)
    restart = Restart(item, found.fingerprint, revision, state, standing, lane, found.priority, found.intake_id)
    tx.put("restart_items", [restart])
    if waiting is not None:
        tx.put("set_waiting_revisions", [Waiting(item, found.fingerprint, waiting, found.intake_id)])
    tx.put("drop_other_bodies", [(item,)])
    journal.write(tx, [journal.Entry(item, kind, found.lease_token + 1, 0, found.state, state, kind, actor=actor)])
    return True


# An item may await another: it states a link of the relation `awaits` to it. When that one is accepted, the item begins
# again and finds it. Two transactions of PostgreSQL do not see each other's rows: while one states that it awaits, the
# other may accept just that item, and each would miss the other. So whatever states such a link holds a lock that
# excludes all transactions which accept items of the pipeline; these share it among themselves.


def lock_awaits(
    database: Database, tx: Tx, pipelines: Mapping[str, Pipeline], settlements: Sequence[Settlement]
) -> None:
    """Keep transactions that await items apart from those that accept them; before any row is locked."""
    waits = {s.pipeline for s in settlements if _awaits(s)}
    accepts = {s.pipeline for s in settlements if s.accepts}
    for pipeline in sorted(waits | {name for name in accepts if looks_around(pipelines, name)}):
        database.lock(tx, f"awaits:{pipeline}", is_shared=pipeline not in waits)


def wake_awaiting(tx: Tx, pipelines: Mapping[str, Pipeline], settlements: Sequence[Settlement]) -> int:
    """Begin items again that await one which is accepted by now; return how many."""
    pairs: dict[str, list[Awaiting]] = {}
    for pipeline in dict.fromkeys(s.pipeline for s in settlements if s.accepts):
        if looks_around(pipelines, pipeline) and tx.value("any_awaiting", pipeline=pipeline):
            refs = [(ref(s.kind, s.key),) for s in settlements if s.accepts and s.pipeline == pipeline]
            pairs.setdefault(pipeline, []).extend(tx.returning(Awaiting, "awaiting", refs, pipeline=pipeline))
    for s in settlements:
        for link in s.links or ():
            if link.relation == AWAITS and _was_missed(tx, s.pipeline, late := Awaiting(link.child, link.parent)):
                pairs.setdefault(s.pipeline, []).append(late)
    return sum(_wake(tx, pipelines, pipeline, awaiting) for pipeline, awaiting in pairs.items() if awaiting)


def _wake(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, awaiting: Iterable[Awaiting]) -> int:
    """Restart items that may have looked before. Lock them in id order, as settle does, to avoid deadlocks."""
    found = {item.id: (item, each.parent) for each in awaiting if (item := _find(tx, pipeline, each.child)) is not None}
    woken = 0
    # Reading locked nothing; `begin_again` reads each item again under a lock.
    for number, (item, parent) in sorted(found.items()):
        workflow = workflow_of(pipelines, pipeline, item.kind)
        # One that rests at its start and is not leased has not looked yet: it will see the accepted item by itself.
        if workflow is not None and (item.state != workflow.start or item.lease_until is not None):
            woken += begin_again(tx, pipelines, number, workflow.start, parent, "woken")
    return woken


def place_again(database: Database, pipelines: Mapping[str, Pipeline], limit: int) -> int:
    """Begin items again whose card names a wrong parent, as `mark_misplaced` found them; return how many."""
    with database.transaction() as tx:
        return sum(_place_again(tx, pipelines, name, limit) for name in pipelines if looks_around(pipelines, name))


def _place_again(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, limit: int) -> int:
    marked = tx.rows(Awaiting, "misplaced", pipeline=pipeline, limit=limit)
    if not marked:
        return 0
    woken = _wake(tx, pipelines, pipeline, marked)
    tx.put("drop_misplaced", [(each.child,) for each in marked], pipeline=pipeline)
    return woken


def _was_missed(tx: Tx, pipeline: str, awaiting: Awaiting) -> bool:
    """Tell whether an awaited item was accepted while the other was worked on.

    One that was already restarted for it and still awaits it does not see what it wants: it is not restarted for ever.
    """
    item, awaited = _find(tx, pipeline, awaiting.child), _find(tx, pipeline, awaiting.parent)
    if item is None or awaited is None or awaited.accepted_revision is None:
        return False
    return tx.row(LastRestart, "last_restart", item=item.id) != ("woken", awaiting.parent)


def _awaits(settlement: Settlement) -> bool:
    return bool(settlement.links) and any(link.relation == AWAITS for link in settlement.links or ())


def looks_around(pipelines: Mapping[str, Pipeline], pipeline: str) -> bool:
    """Tell whether a pipeline's items ever ask for others: only such can await one."""
    declared = pipelines.get(pipeline)
    workflows = declared.workflows.values() if declared is not None else ()
    return any(transition.prefetch is not None for each in workflows for transition in each.transitions)


def _find(tx: Tx, pipeline: str, name: str) -> Item | None:
    kind, key = split_ref(name)
    return tx.row(Item, "find_item", pipeline=pipeline, kind=kind, key=key)
