"""Settling: the one place where the end of an attempt is written.

The right an attempt was made by chooses the guarded statement. Whatever ids that returns get the same effects, in the
same transaction: journal, body, links, card, children, restarts. Everything else counts as stale and writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from tidings.model.harmless import storable
from tidings.model.item import NOT_HERE_YET, PLACED, TOP, ByHand, JournalKind, Link, Reserved, ref
from tidings.model.pipeline import Pipeline
from tidings.model.publication import ANNOUNCES, DELIVERY
from tidings.model.settlement import Merged, Settled, Settlement
from tidings.store.cards import Card, put_cards
from tidings.store.db.database import Database, Tx
from tidings.store.items import journal
from tidings.store.items.births import Arrival, NewBody, bear
from tidings.store.items.journal import ERROR_CHARS_MAX
from tidings.store.items.restarts import Ended, Held, begin_waiting, lock_awaits, looks_around, wake_awaiting
from tidings.store.links import (
    BY_CHILD,
    LinkRow,
    StatedPlace,
    add_links,
    mark_misplaced,
    missing_parents,
    replace_links,
)
from tidings.store.reservations import Stretch, finish, merge_abandoned, stretches
from tidings.watch.logs import Seldom, event

CAUSE_CHARS_MAX = 200
_BY_PIPELINE = attrgetter("pipeline")
_seldom = Seldom()


class Close(NamedTuple):
    """A row of `settle_leased` and `settle_by_hand`."""

    id: int
    token: int
    state_before: str
    state: str
    standing: str
    lane: str | None
    attempts: int
    due_at: int | None
    delay_ms: int | None
    error: str | None
    cause: str | None
    failing_since: int | None
    accepts: int
    advanced: int


class RunItem(NamedTuple):
    """A row of `settle_reserved`."""

    id: int
    pipeline: str
    kind: str
    key: str
    fingerprint: str
    state: str
    standing: str
    lane: str | None
    priority: int
    due_at: int | None
    delay_ms: int | None
    attempts: int
    token: int
    accepted_revision: int | None
    intake_id: int
    error: str | None
    cause: str | None
    failing_since: int | None


class ItemId(NamedTuple):
    """The id of an item whose right held."""

    id: int


def settle(database: Database, pipelines: Mapping[str, Pipeline], settlements: Sequence[Settlement]) -> Settled:
    """Close a batch of attempts, all by the same sort of right."""
    if not settlements:
        return Settled(frozenset(), frozenset())
    # Items are locked in the order of their ids, here as everywhere: otherwise two settling workers could each wait for
    # a row that the other has locked. Of two attempts at one item only the newer can hold the lease. The older is
    # dropped here: effects are written by id, so it would pass as the newer one whose right held.
    ordered = list({s.id: s for s in sorted(settlements, key=_id_and_token)}.values())
    right = ordered[0].right
    with database.transaction() as tx:
        stretch = None
        if isinstance(right, Reserved):
            database.lock(tx, f"merge:{ordered[0].pipeline}")
            merge_abandoned(tx, pipelines, ordered[0].pipeline, own=right.batch)
            reserved = stretches(tx, ordered[0].pipeline)
            stretch = next((each for each in reserved if each.id == right.batch), None)
            # An earlier stretch is not written yet. It may hold older findings of the same keys, and the checkpoint is
            # one number: moved out of order it would pass over findings that are not merged.
            if stretch is not None and stretch is not reserved[0]:
                return Settled(frozenset(), frozenset(), must_wait=True)
        # A named lock after the first row lock could deadlock with a transaction that takes them the other way round.
        lock_awaits(database, tx, pipelines, ordered)
        closed = _close(tx, ordered, stretch)
        settled = ordered if len(closed) == len(ordered) else [s for s in ordered if s.id in closed]
        born, dropped = _write_effects(tx, pipelines, settled)
        born += begin_waiting(tx, pipelines, _ended(settled, closed))
        born += wake_awaiting(tx, pipelines, settled)
        merged = _finish(tx, pipelines, stretch, ordered, settled) if stretch is not None else Merged()
        _show(tx, pipelines, settled)
        misplaced = _mark_misplaced(tx, pipelines, settled, dropped)
    done = frozenset(closed)
    stale = frozenset() if len(done) == len(settlements) else frozenset([s.id for s in settlements]) - done
    return Settled(done, stale, born, merged, misplaced=misplaced)


def _id_and_token(settlement: Settlement) -> tuple[int, int]:
    return settlement.id, settlement.right.token


def _close(tx: Tx, ordered: list[Settlement], stretch: Stretch | None) -> dict[int, Held | None]:
    """Run the guarded statement of the right; return what it found on each item whose right held."""
    right = ordered[0].right
    if isinstance(right, Reserved):
        rows = [_run_item(s, s.right) for s in ordered if isinstance(s.right, Reserved)] if stretch is not None else []
        return {row.id: None for row in tx.returning(ItemId, "settle_reserved", rows)}
    statement = "settle_by_hand" if isinstance(right, ByHand) else "settle_leased"
    return {held.id: held for held in tx.returning(Held, statement, [_closing(s) for s in ordered])}


def _closing(s: Settlement) -> Close:
    return Close(
        s.id, s.right.token, s.state_before, s.state, s.standing, s.lane, s.attempts, s.due_at, s.delay_ms, _error(s),
        _cause(s), s.failing_since, int(s.accepts), int(s.ended == "advanced"),
    )  # fmt: skip


def _run_item(s: Settlement, right: Reserved) -> RunItem:
    found = right.finding
    return RunItem(
        s.id, s.pipeline, s.kind, s.key, found.fingerprint, s.state, s.standing, s.lane, found.priority, s.due_at,
        s.delay_ms, s.attempts, right.token, 1 if s.accepts else None, found.id, _error(s), _cause(s), s.failing_since,
    )  # fmt: skip


def _finish(
    tx: Tx, pipelines: Mapping[str, Pipeline], stretch: Stretch, ordered: list[Settlement], settled: list[Settlement]
) -> Merged:
    """End the reservation: what was not run, or exists by now, is merged as usual."""
    written = {s.right.finding.id for s in settled if isinstance(s.right, Reserved)}
    return finish(tx, pipelines, ordered[0].pipeline, stretch, written)


def _ended(settled: list[Settlement], closed: Mapping[int, Held | None]) -> list[Ended]:
    pairs = [(s, closed[s.id]) for s in settled]
    return [Ended(s.pipeline, s.kind, s.state, s.standing, held) for s, held in pairs if held is not None]


def _write_effects(
    tx: Tx, pipelines: Mapping[str, Pipeline], settled: list[Settlement]
) -> tuple[int, list[StatedPlace]]:
    """Write what attempts leave besides their items' rows; return how many children were born, and dropped links."""
    if not settled:
        return 0, []
    dropped: list[StatedPlace] = []
    _note_missing_parents(tx, settled)
    journal.write(tx, [_entry(s) for s in settled])
    are_new = isinstance(settled[0].right, Reserved)
    bodies = [NewBody(s.id, s.revision, body) for s in settled if (body := _body(s)) is not None]
    # A plain insert: looking for rows that cannot be there costs PostgreSQL as much as writing them.
    tx.put("insert_bodies" if are_new else "put_bodies", bodies)
    tx.put("drop_other_bodies", [(s.id,) for s in settled if s.accepts and s.revision > 1])
    if are_new:
        add_links(tx, [(s.pipeline, ref(s.kind, s.key), s.links) for s in settled if s.links])
    else:
        # The first lease has token 1. Before it the item has stated nothing, so there is nothing to remove.
        stated = [(s.pipeline, ref(s.kind, s.key), s.links, s.right.token > 1) for s in settled if s.links is not None]
        dropped = replace_links(tx, stated)
    return _bear_children(tx, pipelines, [s for s in settled if s.children]), dropped


def _note_missing_parents(tx: Tx, settled: list[Settlement]) -> None:
    """Note with the step that names a parent, and in the log, that it is not here; links join when it comes."""
    stated = [s for s in settled if s.links and s.linked_at >= 0]
    for pipeline, group in groupby(sorted(stated, key=_BY_PIPELINE), key=_BY_PIPELINE):
        named = {ref(s.kind, s.key): s for s in group}
        pairs = [
            (link.child, link.parent)
            for name, s in named.items()
            for link in s.links or ()
            if link.child == name and link.parent != TOP and link.relation != PLACED
        ]
        missing = missing_parents(tx, pipeline, pairs)
        for name, parent in missing.items():
            _note(named[name], f"{parent} {NOT_HERE_YET}")
            event("parent missing", level=logging.DEBUG, pipeline=pipeline, item=name, parent=parent)
        if missing:
            name, parent = next(iter(missing.items()))
            _seldom.event("parents missing", pipeline=pipeline, items=len(missing), first=f"{name} names {parent}")


def _note(s: Settlement, words: str) -> None:
    step = s.steps[s.linked_at]
    if step.note is not None and words in step.note:
        return  # noted by a try to settle that the store did not take
    note = f"{words}; {step.note}" if step.note else words
    s.steps = [*s.steps[: s.linked_at], replace(step, note=note), *s.steps[s.linked_at + 1 :]]


def _mark_misplaced(
    tx: Tx, pipelines: Mapping[str, Pipeline], settled: list[Settlement], dropped: list[StatedPlace]
) -> int:
    """Find the items whose cards name another parent than the links do now; only who looks around can mend that."""
    stated: dict[str, list[Link]] = {}
    for s in settled:
        if s.links is not None and looks_around(pipelines, s.pipeline):
            stated.setdefault(s.pipeline, []).extend(s.links)
    return sum(mark_misplaced(tx, pipeline, links, dropped) for pipeline, links in stated.items())


def _show(tx: Tx, pipelines: Mapping[str, Pipeline], settled: list[Settlement]) -> None:
    """Put and withdraw cards: last of all, because a card's version keeps other settles from drawing theirs."""
    shown = sorted((s for s in settled if s.presents), key=_BY_PIPELINE)
    for name, group in groupby(shown, key=_BY_PIPELINE):
        cards = list(group)
        are_new = isinstance(cards[0].right, Reserved)
        put_cards(tx, pipelines[name], [Card(s.id, s.revision, s.shown) for s in cards], are_new=are_new)


def _entry(s: Settlement) -> journal.Entry:
    steps = journal.encode_steps(s.steps)
    if isinstance(s.right, ByHand):
        reason = storable(s.right.reason, " ")[:ERROR_CHARS_MAX]
        return journal.Entry(
            s.id, "manual", s.right.token + 1, 0, s.state_before, s.state, "manual", reason, s.right.actor, steps
        )
    kind: JournalKind = "born" if isinstance(s.right, Reserved) else "attempt"
    # Only these endings use up a try. After any other, the next state starts counting at one again.
    attempt = s.attempts if s.ended in ("retried", "postponed", "parked", "dead") else 0
    return journal.Entry(s.id, kind, s.right.token, attempt, s.state_before, s.state, s.ended, _error(s), None, steps)


def _body(s: Settlement) -> bytes | None:
    """Return the body to write: an item that is born has one in any case."""
    return s.right.finding.payload if s.body is None and isinstance(s.right, Reserved) else s.body


def _bear_children(tx: Tx, pipelines: Mapping[str, Pipeline], parents: list[Settlement]) -> int:
    """Insert the children of attempts; return how many were new.

    The delivery of a notice is born in the transaction that advances its item: a crash between the two would lose the
    notice, or announce what was never published.
    """
    if not parents:
        return 0
    # A delivery is linked to what it announces; other children state their own links when they are processed.
    announced = [
        LinkRow(s.pipeline, ANNOUNCES, ref(DELIVERY, child.key), BY_CHILD, ref(s.kind, s.key), None)
        for s in parents
        for child in s.children
        if child.kind == DELIVERY
    ]
    # Each row once: a statement must not write the same row twice.
    tx.put("put_links", dict.fromkeys(announced))
    # In one order everywhere: two workers that insert the same children at once would otherwise lock each other out.
    # A delivery has one parent only: deliveries keep their parents' order, in which the channel then tells of them.
    children = sorted(
        (child for s in parents for child in s.children),
        key=lambda child: (child.pipeline, child.kind, "" if child.kind == DELIVERY else child.key),
    )
    return sum(
        len(bear(tx, pipelines, [Arrival(child, 0) for child in group]).born)
        for _, group in groupby(children, key=_BY_PIPELINE)
    )


def _error(s: Settlement) -> str | None:
    return storable(s.error, " ")[:ERROR_CHARS_MAX] if s.error else None


def _cause(s: Settlement) -> str | None:
    return storable(s.cause, " ")[:CAUSE_CHARS_MAX] if s.cause else None
