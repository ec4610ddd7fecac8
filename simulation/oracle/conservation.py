"""A: what was accepted is conserved, in order; B12: no accepted copy is replaced unread."""

from __future__ import annotations

import msgspec

from simulation.oracle.knowledge import Answer, Knowledge, marks_of
from simulation.oracle.snapshot import ItemRow, Snapshot
from simulation.pipelines import PAGE
from tidings.model.item import Finding
from tidings.model.publication import DELIVERY

AT_REST = ("done", "rejected", "waits", "dead")
BORN_IN_SETTLES = ("part", DELIVERY)


def check(known: Knowledge, before: Snapshot, now: Snapshot) -> None:
    """Compare two snapshots of neighboring commits."""
    for row in now.new_log:
        known.log(row)
    _forget(known, before, now)
    _conserved(known, now)
    for number in before.items.keys() - now.items.keys():
        _vanished(known, before, now, before.items[number])
    _in_order(known, before, now)
    _excuse_ended(known, before, now)
    _copies(known, now)


def _forget(known: Knowledge, before: Snapshot, now: Snapshot) -> None:
    if before.tombstones == now.tombstones:
        return
    waiting = {row.name for row in now.unmerged}
    for name, tombstone in before.tombstones.items():
        if name in now.tombstones or name in now.names or name in waiting:
            continue
        if tombstone.forget_at > now.now_ms + known.slack_ms:
            known.break_rule("A7", f"the tombstone of {name} was dropped before its time")
        known.forget(name)


def _conserved(known: Knowledge, now: Snapshot) -> None:
    """A1, A2: every logged name is in the log, an item or a tombstone, and nothing comes from nowhere."""
    waiting = {row.name for row in now.unmerged}
    if lost := known.logs.keys() - now.names.keys() - now.tombstones.keys() - waiting:
        known.break_rule("A1", f"accepted and gone: {sorted(lost)}")
    if both := now.names.keys() & now.tombstones.keys():
        known.break_rule("A2", f"item and tombstone at once: {sorted(both)}")
    if nowhere := [name for name in now.names if name not in known.logs and name[1] not in BORN_IN_SETTLES]:
        known.break_rule("A2", f"items that nobody offered: {nowhere}")


def _vanished(known: Knowledge, before: Snapshot, now: Snapshot, item: ItemRow) -> None:
    """A7: items vanish at rest, or unlisted and in nobody's hands, with no delivery open, and leave a tombstone."""
    is_free = item.lease_until is None
    is_at_rest = item.standing in AT_REST and item.waiting_revision is None
    if not is_free or not (is_at_rest or item.kind == PAGE):
        known.break_rule("A7", f"{item} was removed while {item.standing}")
    if item.name not in now.tombstones and item.name not in now.names:
        known.break_rule("A7", f"{item} left no tombstone")
    prefix = f"room/{item.kind}/{item.key}/"
    deliveries = [i for i in now.items.values() if i.kind == DELIVERY and i.key.startswith(prefix)]
    if any(delivery.standing in ("open", "parked") for delivery in deliveries):
        known.break_rule("A7", f"{item} was removed before it was announced")
    for body in before.bodies.get(item.id, {}).values():
        known.excuse(item.name, body)


def _in_order(known: Knowledge, before: Snapshot, now: Snapshot) -> None:
    """A5: the checkpoint never goes back; every item knows the last of its copies behind it, and no later one."""
    for pipeline, checkpoint in before.checkpoints.items():
        if now.checkpoints.get(pipeline, 0) < checkpoint:
            known.break_rule("A5", f"the checkpoint of {pipeline} went back")
    for name, copies in known.logs.items():
        item = now.names.get(name)
        if item is None:
            continue
        checkpoint = now.checkpoints.get(item.pipeline, 0)
        last = next((copy for copy in reversed(copies) if copy.place <= checkpoint), None)
        if last is None or item.fingerprint != last.fingerprint or item.intake_id > checkpoint:
            known.break_rule("A5", f"{item} is not what its last merged copy says: {last}")


def _excuse_ended(known: Knowledge, before: Snapshot, now: Snapshot) -> None:
    """Excuse copies that ended dead, rejected, failed or by hand: these were read, and a person was told."""
    for item in now.items.values():
        if item.standing in ("dead", "rejected") or item.state == "failed":
            known.excuse(item.name, now.bodies.get(item.id, {}).get(item.revision))
    for row in now.new_journal:
        was, born = before.items.get(row.item), now.items.get(row.item)
        if row.kind != "manual" and row.ended not in ("dead", "rejected", "failed"):
            continue
        if was is not None:
            known.excuse(was.name, before.bodies.get(row.item, {}).get(was.revision))
        elif born is not None:
            _excuse_first(known, before, born)


def _excuse_first(known: Knowledge, before: Snapshot, item: ItemRow) -> None:
    """Excuse the copy that was run ahead of its item's birth, where it ended and the next copy began in one commit."""
    checkpoint = before.checkpoints.get(item.pipeline, 0)
    first = next((copy for copy in known.logs.get(item.name, ()) if copy.place > checkpoint), None)
    if first is not None:
        known.excused.setdefault(item.name, set()).add(first.mark)


def _copies(known: Knowledge, now: Snapshot) -> None:
    """B12: a copy that takes turns is in the log, or in a body of its item: working, waiting or accepted."""
    for name, copies in known.logs.items():
        item = now.names.get(name)
        if item is None or not known.takes_turns(name):
            continue
        checkpoint = now.checkpoints.get(item.pipeline, 0)
        held: set[int] = set(known.excused.get(name, ()))
        for body in now.bodies.get(item.id, {}).values():
            held |= marks_of(name[0], body)
        if lost := [copy.mark for copy in copies if copy.place <= checkpoint and copy.mark not in held]:
            known.break_rule("B12", f"{item} at revision {item.revision} lost the copies {lost}")


def check_answer(known: Knowledge, now: Snapshot, answer: Answer) -> None:
    """A1, A4, A9: what was acknowledged is durable, and "unchanged" is never said of something new."""
    known.acknowledged += len(answer.findings)
    said = answer.appended
    if said.new + said.changed + said.unchanged != len(answer.findings):
        known.break_rule("A9", f"{said} for {len(answer.findings)} copies")
    for finding in answer.findings:
        if not _is_durable(known, now, finding):
            known.break_rule("A1", f"a copy of {finding.kind} {finding.key} was acknowledged and is nowhere")


def check_cursor(known: Knowledge, now: Snapshot, source: str, entries: list[Finding]) -> None:
    """A3: what a source's cursor has passed is durable; its mark never lies ahead of its cursor."""
    cursor, mark = (msgspec.json.decode(text) if text else 0 for text in now.cursors.get(source, (None, None)))
    if mark > cursor:
        known.break_rule("A3", f"the mark {mark} of {source} is ahead of its cursor {cursor}")
    for finding in entries[known.passed.get(source, 0) : cursor]:
        if not _is_durable(known, now, finding):
            known.break_rule("A3", f"the cursor of {source} passed {finding.kind} {finding.key}, which is nowhere")
    known.passed[source] = cursor


def _is_durable(known: Knowledge, now: Snapshot, finding: Finding) -> bool:
    name = (finding.pipeline, finding.kind, finding.key)
    tombstone = now.tombstones.get(name)
    return (name, finding.fingerprint) in known.ever or (
        tombstone is not None and tombstone.fingerprint == finding.fingerprint
    )
