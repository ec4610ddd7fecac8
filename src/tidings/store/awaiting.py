"""Beginning again: because an operator says so, or because somebody an item awaits has been accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidings.model.item import AWAITS, Item, JournalKind, ref, split_ref
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Settlement
from tidings.store.database import Row, Tx

BATCH = 500
FIRST: Row = ("", "", "")


def begin_again(
    tx: Tx, pipelines: Mapping[str, Pipeline], item: int, state: str, actor: str, kind: JournalKind
) -> bool:
    """Process an item again from a state, as its newest revision; tell whether it is there.

    Where copies take turns, the one whose turn it is begins, and the others go on waiting.
    """
    row = tx.one("item_for_update", id=item)
    if row is None:
        return False
    found = Item(*row)
    workflow = pipelines[found.pipeline].workflows[found.kind]
    revision, waiting = found.revision, found.waiting_revision
    if waiting is not None:
        state = workflow.start  # a revision nobody has worked on has come past no state
        revision, waiting = (revision, waiting) if workflow.in_turn else (waiting, None)
    lane = workflow.lane_of(state)
    standing = workflow.standing_in(state, due=lane is not None)
    intake = tx.sql("SELECT intake_id FROM items WHERE id = :id", {"id": item})[0][0]
    tx.many("restart_item", [(item, found.fingerprint, revision, state, standing, lane, found.priority, intake)])
    if waiting is not None:
        tx.many("set_waiting_revision", [(item, found.fingerprint, waiting, intake)])
    tx.many("drop_other_bodies", [(item,)])
    tx.many("insert_journal", [(item, kind, found.lease_token + 1, 0, found.state, state, kind, None, actor, None)])
    return True


def wake_for(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, accepted: Iterable[tuple[str, str]]) -> int:
    """Let those begin again that await any of the accepted (kind, key); return how many."""
    if not _looks_around(pipelines, pipeline) or tx.one("any_awaiting", pipeline=pipeline) is None:
        return 0
    names = [ref(kind, key) for kind, key in accepted]
    rows = tx.many("awaiting", [(number, pipeline, name) for number, name in enumerate(names)])
    return _wake(tx, pipelines, pipeline, [(child, names[number]) for number, child in rows])


def awaiting(settlements: Sequence[Settlement]) -> list[Settlement]:
    """Return those that await somebody."""
    return [s for s in settlements if s.links and any(link.relation == AWAITS for link in s.links)]


def wake_late(tx: Tx, pipelines: Mapping[str, Pipeline], settled: Sequence[Settlement]) -> int:
    """Let those begin again that await somebody who was accepted while they were worked on; return how many."""
    named = [
        (s.pipeline, link.child, link.parent) for s in settled for link in s.links or () if link.relation == AWAITS
    ]
    return sum(_wake(tx, pipelines, row[0], [row[1:]]) for row in named if _has_missed(tx, *row))


def wake_missed(tx: Tx, pipelines: Mapping[str, Pipeline], after: Row) -> tuple[int, Row]:
    """Let those begin again that await somebody who is accepted; return how many, and where to go on next time.

    Two transactions of PostgreSQL at once do not see each other: one states that it awaits, one accepts whom.
    """
    pipeline, parent, child = after
    rows = tx.all("all_awaiting", pipeline=pipeline, parent=parent, child=child, limit=BATCH)
    missed = [(each, child, parent) for each, parent, child in rows if _has_missed(tx, each, child, parent)]
    woken = sum(_wake(tx, pipelines, row[0], [row[1:]]) for row in missed)
    return woken, rows[-1] if len(rows) == BATCH else FIRST


def _wake(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, pairs: Iterable[tuple[str, str]]) -> int:
    """Let those of (who awaits, whom) begin again that may have looked before; in one order, as all who lock items."""
    found = {item.id: (item, whom) for who, whom in pairs if (item := _find(tx, pipeline, who)) is not None}
    declared = pipelines.get(pipeline)
    woken = 0
    for number, (item, whom) in sorted(found.items()):
        workflow = declared.workflows.get(item.kind) if declared else None
        if workflow is not None and (item.state != workflow.start or item.lease_until is not None):
            woken += begin_again(tx, pipelines, number, workflow.start, whom, "woken")
    return woken


def _has_missed(tx: Tx, pipeline: str, who: str, whom: str) -> bool:
    """Tell whether whom an item awaits is accepted, and has not woken it yet: who still awaits cannot see it."""
    item, awaited = _find(tx, pipeline, who), _find(tx, pipeline, whom)
    if item is None or awaited is None or awaited.accepted_revision is None:
        return False
    return tx.one("last_cause", item=item.id) != ("woken", whom)


def _looks_around(pipelines: Mapping[str, Pipeline], pipeline: str) -> bool:
    """Tell whether a pipeline's items ever ask for others: only such can await one."""
    declared = pipelines.get(pipeline)
    workflows = declared.workflows.values() if declared is not None else ()
    return any(transition.prefetch is not None for each in workflows for transition in each.transitions)


def _find(tx: Tx, pipeline: str, name: str) -> Item | None:
    kind, key = split_ref(name)
    row = tx.one("find_item", pipeline=pipeline, kind=kind, key=key)
    return Item(*row) if row is not None else None
