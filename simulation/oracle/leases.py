"""B: leases, tokens and who may write under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from simulation.oracle.knowledge import Knowledge
from simulation.oracle.snapshot import ItemRow, JournalRow, Snapshot

LOST_LEASES_MAX = 3
PEOPLE = frozenset({"manual", "revived", "replayed", "woken"})
"""What may end anybody's lease."""


@dataclass
class Leases:
    """Remembers tokens and grants beyond what one snapshot shows."""

    known: Knowledge
    tokens: dict[int, int] = field(default_factory=dict)
    grants: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Who holds an item, and when by the loop's time its lease was last granted or prolonged."""
    last_grants: dict[tuple[int, str], float] = field(default_factory=dict)
    """The same for each owner an item had."""

    def check(self, before: Snapshot, now: Snapshot, at: float) -> None:
        """Compare two snapshots of neighboring commits."""
        written = now.written
        for item in now.items.values():
            was = before.items.get(item.id)
            rows = written.get(item.id, ())
            if item is not was and item != was:
                self._token(item)
                self._lost(item)
                if was is not None:
                    self._moved(was, item, rows, now)
                if item.lease_until is not None and (was is None or item.lease_until != was.lease_until):
                    owner = item.lease_owner or ""
                    self.grants[item.id] = (owner, at)
                    self.last_grants[item.id, owner] = at
            if was is not None:
                self._bodies(was, item, rows, before, now)
            for row in rows:
                self._row(was, row, now)

    def has_jumped(self, item: int, owner: str, at: float) -> bool:
        """Tell whether the clock jumped since an owner was granted an item: its lease then ended too early or late."""
        granted = self.last_grants.get((item, owner), float("inf"))
        return any(granted <= jump <= at for jump in self.known.jumps)

    def _token(self, item: ItemRow) -> None:
        """B2: tokens only grow."""
        if item.lease_token < self.tokens.get(item.id, 0):
            self.known.break_rule("B2", f"the token of {item} went back to {item.lease_token}")
        self.tokens[item.id] = item.lease_token

    def _lost(self, item: ItemRow) -> None:
        """B9: the third lost lease makes a dead letter."""
        if item.lost_leases > LOST_LEASES_MAX or (item.lost_leases == LOST_LEASES_MAX and item.standing != "dead"):
            self.known.break_rule("B9", f"{item} lost {item.lost_leases} leases and is {item.standing}")

    def _moved(self, was: ItemRow, item: ItemRow, rows: Sequence[JournalRow], now: Snapshot) -> None:
        held = was.lease_until is not None
        is_live = was.lease_until is not None and was.lease_until > now.now_ms + self.known.slack_ms
        is_same = held and item.lease_until is not None and item.lease_token == was.lease_token
        kinds = {row.kind for row in rows}
        if not held and item.lease_until is not None and item.lease_token == was.lease_token:
            self.known.break_rule("B1", f"{item} was leased to {item.lease_owner} without a new token")
        if is_same:
            self._kept(was, item)
        elif is_live and not kinds & {"attempt", "released", *PEOPLE}:
            self.known.break_rule("B1", f"{item} was taken from {was.lease_owner}, whose lease held, by {kinds}")
        elif item.lease_until is not None and item.lease_token != was.lease_token:
            self._granted(was, item)

    def _kept(self, was: ItemRow, item: ItemRow) -> None:
        """A11: while a lease holds, only its end, what waits, and a loss that was none may change.

        A worker that could not reach the store for a while comes back and takes its counted loss off the item, which
        somebody else holds by then. That can only keep the item from being buried as poison.
        """
        names = ("state", "standing", "revision", "accepted_revision", "attempts", "lease_owner")
        changed = [name for name in names if getattr(was, name) != getattr(item, name)]
        if item.lost_leases not in (was.lost_leases, was.lost_leases - 1):
            changed.append("lost_leases")
        if changed:
            self.known.break_rule("A11", f"{item} changed its {changed} under a lease")

    def _granted(self, was: ItemRow, item: ItemRow) -> None:
        """B9: a claim counts an attempt."""
        is_same = was.lease_until is None and item.state == was.state and item.revision == was.revision
        if is_same and item.attempts != was.attempts + 1:
            self.known.break_rule("B9", f"a claim of {item} made {was.attempts} attempts {item.attempts}")

    def _row(self, was: ItemRow | None, row: JournalRow, now: Snapshot) -> None:
        """B3, B5: an attempt is settled under the live token it was claimed with; a sweep takes only dead ones."""
        if row.kind not in ("attempt", "swept") or (row.ended == "dead" and row.kind == "swept"):
            return
        if was is None or was.lease_until is None or was.lease_token != row.token or was.state != row.from_state:
            seen = None if was is None else (was.lease_token, was.lease_until, was.state)
            self.known.break_rule("B3", f"item {row.item}: {row.kind} with token {row.token}, but it was {seen}")
        elif row.kind == "attempt" and was.lease_until <= now.now_ms - self.known.slack_ms:
            self.known.break_rule("B3", f"{was} was settled after its lease had ended")
        elif row.kind == "swept" and was.lease_until > now.now_ms + self.known.slack_ms:
            self.known.break_rule("B5", f"{was} was swept although its lease held")

    def _bodies(self, was: ItemRow, item: ItemRow, rows: Sequence[JournalRow], before: Snapshot, now: Snapshot) -> None:
        """B3, A11: the body that is worked on and the one readers see change only with a line in the journal."""
        if rows:
            return
        old, new = before.bodies.get(item.id, {}), now.bodies.get(item.id, {})
        for revision in {was.revision, was.accepted_revision} - {None}:
            if old.get(revision) != new.get(revision):  # type: ignore[arg-type]  # None was taken out
                self.known.break_rule("B3", f"the body of {item} changed at revision {revision} without an attempt")
