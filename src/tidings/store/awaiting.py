"""Beginning again: because an operator says so, or because somebody an item awaits has been born."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidings.model.item import AWAITS, Item, JournalKind, ref, split_ref
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Settlement
from tidings.store.database import Tx

BIRTH_MS = 10_000
"""How long a birth may take, from the time it bears to the time others see it."""


def begin_again(
    tx: Tx, pipelines: Mapping[str, Pipeline], item: int, state: str, actor: str, kind: JournalKind
) -> bool:
    """Process an item again from a state, as its newest revision; tell whether it is there."""
    row = tx.one("item_for_update", id=item)
    if row is None:
        return False
    found = Item(*row)
    workflow = pipelines[found.pipeline].workflows[found.kind]
    if found.waiting_revision is not None:
        state = workflow.start  # a revision nobody has worked on has come past no state
    lane = workflow.lane_of(state)
    standing = workflow.standing_in(state, due=lane is not None)
    revision = found.waiting_revision or found.revision
    intake = tx.sql("SELECT intake_id FROM items WHERE id = :id", {"id": item})[0][0]
    tx.many("restart_item", [(item, found.fingerprint, revision, state, standing, lane, found.priority, intake)])
    tx.many("drop_other_bodies", [(item,)])
    tx.many("insert_journal", [(item, kind, found.lease_token + 1, 0, found.state, state, kind, None, actor, None)])
    return True


def wake_for(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, born: Iterable[tuple[str, str]]) -> int:
    """Let those begin again that await any of the newborn (kind, key); return how many."""
    if tx.one("any_awaiting", pipeline=pipeline) is None:
        return 0
    rows = tx.many("awaiting", [(pipeline, ref(kind, key)) for kind, key in born])
    return sum(_wake(tx, pipelines, pipeline, name, arrived) for name, arrived in sorted(rows))


def awaiting(settlements: Sequence[Settlement]) -> list[Settlement]:
    """Return those that await somebody."""
    return [s for s in settlements if s.links and any(link.relation == AWAITS for link in s.links)]


def wake_late(
    tx: Tx, pipelines: Mapping[str, Pipeline], settled: Sequence[Settlement], since: Mapping[int, int]
) -> int:
    """Let those begin again that await somebody who was born while they were worked on; return how many.

    `since` tells from when on an attempt may have looked around; one that did not begin at the start may not have
    looked at all.
    """
    woken = 0
    for s in settled:
        has_looked = s.state_before == pipelines[s.pipeline].workflows[s.kind].start
        for link in s.links or ():
            if link.relation != AWAITS:
                continue
            row = tx.one("find_item", pipeline=s.pipeline, **_named(link.parent))
            if row is not None and not (has_looked and Item(*row).created_at < since[s.id] - BIRTH_MS):
                woken += _wake(tx, pipelines, s.pipeline, link.child, link.parent)
                break
    return woken


def _wake(tx: Tx, pipelines: Mapping[str, Pipeline], pipeline: str, name: str, arrived: str) -> bool:
    row = tx.one("find_item", pipeline=pipeline, **_named(name))
    workflow = pipelines[pipeline].workflows.get(split_ref(name)[0])
    if row is None or workflow is None:
        return False
    return begin_again(tx, pipelines, Item(*row).id, workflow.start, arrived, "woken")


def _named(name: str) -> dict[str, str]:
    kind, key = split_ref(name)
    return {"kind": kind, "key": key}
