"""D: what people are told, judged by what the room heard; and the children that are born with what is published."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulation.oracle.knowledge import Knowledge, decoded
from simulation.oracle.leases import Leases
from simulation.oracle.snapshot import ItemRow, Snapshot
from simulation.pipelines import CHANNEL, PAGE, PAGES, PART, Thing, part_keys
from simulation.world import World
from tidings.model.publication import DELIVERY


@dataclass
class Deliveries:
    """Knows which delivery is which item, and how often a send may have been lost."""

    known: Knowledge
    leases: Leases
    world: World
    items: dict[str, int] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    """How many leases of each delivery were lost, or given back in mid-send: each may have been a send."""
    revived: dict[int, int] = field(default_factory=dict)

    def check(self, before: Snapshot, now: Snapshot) -> None:
        """Compare two snapshots of neighboring commits."""
        for item in now.items.values():
            was = before.items.get(item.id)
            if was is item or was == item:
                continue
            if item.kind == DELIVERY:
                self._learn(item, now)
            elif item.kind == PAGE and item.accepted_revision not in (None, was and was.accepted_revision):
                self._announced(item, now)
        for row in now.new_journal:
            self.lost[row.item] = self.lost.get(row.item, 0) + (row.kind == "swept" and row.ended == "lost")
            self.revived[row.item] = self.revived.get(row.item, 0) + (row.kind == "revived")

    def _learn(self, item: ItemRow, now: Snapshot) -> None:
        body = now.bodies.get(item.id, {}).get(item.revision)
        if body is not None:
            self.items[decoded(body)["id"]] = item.id

    def _announced(self, item: ItemRow, now: Snapshot) -> None:
        """D1: what is published is announced, and its children are born, in the same commit."""
        body = now.bodies.get(item.id, {}).get(item.accepted_revision or 0)
        value = decoded(body) if body is not None else {}
        thing = Thing(item.key, value.get("mark", 0))
        names = [(PAGES, PART, key) for key in part_keys(thing)]
        names.append((PAGES, DELIVERY, f"{CHANNEL}/{PAGE}/{item.key}/{item.accepted_revision}"))
        if missing := [name for name in names if name not in now.names and name not in now.tombstones]:
            self.known.break_rule("D1", f"{item} was published without {missing}")

    def sending(self, delivery: str, owner: str, now: Snapshot, at: float, lease_seconds: float) -> None:
        """D1, D4, B4: a request leaves only under a live lease of who sends it, and never once it is settled."""
        item = now.items.get(self.items.get(delivery, 0))
        has_jumped = item is not None and self.leases.has_jumped(item.id, owner, at)
        if item is None or (item.state == "sent" and not has_jumped):
            self.known.break_rule("D4", f"{delivery} was sent again: {item} is {item and item.state}")
            return
        holder, granted = self.leases.grants.get(item.id, ("", float("-inf")))
        if not has_jumped and (holder != owner or item.lease_until is None or at > granted + lease_seconds):
            self.known.break_rule(
                "B4",
                f"{owner} began to send {item} {at - granted:.1f} s after the grant of {lease_seconds} s "
                f"to {holder or 'nobody'}",
            )

    def check_heard(self) -> None:
        """D3: the room accepts each delivery once, and once more for every time its outcome was unknown."""
        for delivery, heard in self.world.heard.items():
            number = self.items.get(delivery, 0)
            allowed = 1 + heard.unknown + self.lost.get(number, 0) + self.revived.get(number, 0)
            if heard.accepted > allowed:
                self.known.break_rule("D3", f"{delivery} was accepted {heard.accepted} times, {allowed} explained")

    def check_rest(self, now: Snapshot) -> None:
        """D3: what was sent was heard; what was never in doubt was heard exactly once."""
        self.check_heard()
        for delivery, number in self.items.items():
            item, heard = now.items.get(number), self.world.heard.get(delivery)
            if item is None or item.state != "sent":
                continue
            if heard is None or not heard.accepted:
                self.known.break_rule("D3", f"{item} is sent and the room has not heard of it")
