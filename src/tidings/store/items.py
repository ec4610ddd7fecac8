"""Items, and who may act on them. Every write to a leased row carries its token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from tidings.model.item import PRIORITIES, Item, JournalRow, Lease, split_ref
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Settled, Settlement, Swept
from tidings.store.adopting import Ended, Held, begin_waiting
from tidings.store.awaiting import FIRST, awaiting, wake_for, wake_late, wake_missed
from tidings.store.database import Database, Row, Tx
from tidings.store.effects import DELIVERY, trouble, write_effects
from tidings.store.steps import recall

OLDEST_SHARE = 0.2
LOST_LEASES_MAX = 3
_ID_AND_TOKEN = attrgetter("id", "token")


class Expired(NamedTuple):
    """A lease that ran out, as the statement tells it."""

    id: int
    pipeline: str
    kind: str
    key: str
    state: str
    token: int
    lost_leases: int
    attempts: int

    def journal_row(self, ended: str, error: str) -> tuple[Any, ...]:
        """Return the journal's row of a loss."""
        return (self.id, "swept", self.token, self.attempts, self.state, self.state, ended, error, None, None)


class ItemStore:
    """The working tables."""

    def __init__(
        self, database: Database, pipelines: Mapping[str, Pipeline], *, on_work: Callable[[], None] = lambda: None
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._on_work = on_work
        self._owed: dict[tuple[str, str], float] = {}
        self._turns: dict[tuple[str, str], bool] = {}
        self._looked_through = FIRST

    def claim(
        self,
        pipeline: str,
        lane: str,
        limit: int,
        owner: str,
        lease_seconds: float,
        *,
        in_order: bool = False,
        together: bool = False,
    ) -> list[Lease]:
        """Lease up to `limit` due items: by priority and newest first, with a share for the oldest.

        `in_order` leases by age alone, for lanes whose effects people see in a row. `together` is for lanes that run
        a batch as one: an item whose worker vanished is leased alone there, in every other turn, because it may be
        what the worker died of.
        """
        share = self._oldest_share(pipeline, lane, limit)
        asked: dict[str, Any] = {
            "pipeline": pipeline,
            "lane": lane,
            "owner": owner,
            "lease_ms": round(lease_seconds * 1000),
        }
        with self._database.transaction() as tx:
            if in_order:
                return _leases(pipeline, lane, tx.all("claim_in_order", **asked, limit=limit))
            if together and self._is_suspects_turn(pipeline, lane) and limit:
                suspects = tx.all("claim_suspect", **asked, limit=1)
                if suspects:
                    return _leases(pipeline, lane, suspects)
            asked["lost_max"] = 0 if together else LOST_LEASES_MAX
            rows: list[Row] = []
            for priority in PRIORITIES:
                wanted = limit - share - len(rows)
                if wanted > 0:
                    rows += tx.all("claim_items", **asked, priority=priority, limit=wanted)
            if len(rows) == limit - share:
                for priority in reversed(PRIORITIES):
                    if len(rows) < limit:
                        rows += tx.all("claim_oldest_items", **asked, priority=priority, limit=limit - len(rows))
            return _leases(pipeline, lane, rows)

    def _is_suspects_turn(self, pipeline: str, lane: str) -> bool:
        self._turns[pipeline, lane] = turn = not self._turns.get((pipeline, lane), False)
        return turn

    def _oldest_share(self, pipeline: str, lane: str, limit: int) -> int:
        """Return how many of a claim go to the oldest; what small claims cannot give is owed to the next ones."""
        owed = self._owed.get((pipeline, lane), 0.0) + limit * OLDEST_SHARE
        share = min(limit, int(owed + 1e-9))
        self._owed[pipeline, lane] = owed - share
        return share

    def heartbeat(self, leases: Sequence[tuple[int, int]], lease_seconds: float) -> set[int]:
        """Prolong leases (id, token) that still hold; return their ids."""
        with self._database.transaction() as tx:
            rows = tx.many("heartbeat", [(i, t, round(lease_seconds * 1000)) for i, t in leases])
        return {row[0] for row in rows}

    def regain(self, leases: Sequence[tuple[int, int]], lease_seconds: float) -> set[int]:
        """Take leases (id, token) up again that nobody else has taken, though they may have run out; return their ids.

        For a holder that lived on while it could not reach the store. What was swept meanwhile is lost, but nobody died
        of it: the loss is not counted, unless a delivery may have been sent.
        """
        with self._database.transaction() as tx:
            rows = tx.many("regain", [(i, t, round(lease_seconds * 1000)) for i, t in leases])
            held = {row[0] for row in rows}
            lost = [lease for lease in leases if lease[0] not in held]
            if lost:
                tx.many("excuse_loss", lost)
        return held

    def release(self, leases: Sequence[tuple[int, int]]) -> int:
        """Give leases back unused, with their attempt."""
        if not leases:
            return 0
        with self._database.transaction() as tx:
            released = tx.many("release", leases)
            tx.many(
                "insert_journal",
                [(i, "released", t, a, s, s, "released", None, None, None) for i, s, a, t in released],
            )
        return len(released)

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """Close a batch: the guarded update first, effects only for the ids it returned."""
        if not settlements:
            return Settled(frozenset(), frozenset())
        # One order for all keeps two settling workers from waiting for each other in a circle.
        # Of two attempts at one item only the newer can hold its lease; the older must not ride on its right.
        ordered = list({s.id: s for s in sorted(settlements, key=_ID_AND_TOKEN)}.values())
        await_others = awaiting(ordered)
        with self._database.transaction() as tx:
            returned = _close(tx, ordered)
            held = ordered if len(returned) == len(ordered) else [s for s in ordered if s.id in returned]
            born = write_effects(tx, self._pipelines, held)
            begin_waiting(tx, self._pipelines, _ended(held, returned))
            woken = wake_late(tx, self._pipelines, [s for s in await_others if s.id in returned])
            for name in dict.fromkeys(s.pipeline for s in held if s.accepts):
                accepted = ((s.kind, s.key) for s in held if s.accepts and s.pipeline == name)
                woken += wake_for(tx, self._pipelines, name, accepted)
        done = frozenset(returned)
        stale = frozenset() if len(done) == len(settlements) else frozenset([s.id for s in settlements]) - done
        return Settled(done, stale, born + woken)

    def were_settled(self, leases: Sequence[tuple[int, int]]) -> set[int]:
        """Tell which leases a journal row closed: read back after a COMMIT whose reply was lost."""
        with self._database.reading() as tx:
            return {row[0] for row in tx.many("closed_tokens", leases)}

    def sweep(self, limit: int = 500) -> Swept:
        """Return expired leases to the queue, by the token seen; the third loss makes a dead letter."""
        with self._database.transaction() as tx:
            expired = tx.all("expired_leases", limit=limit)
            if not expired:
                return Swept()
            seen = [Expired(*row) for row in expired]
            swept = tx.many("sweep_lease", [(lease.id, lease.token) for lease in seen])
            returned = {row[0]: Held(*row) for row in swept}
            mine = [lease for lease in seen if lease.id in returned]
            tx.many("insert_journal", [lease.journal_row("lost", "the lease expired") for lease in mine])
            poisoned = [lease for lease in mine if self._is_poisoned(lease, returned[lease.id])]
            self._bury_poisoned(tx, poisoned)
            # The item goes on with the copy it was held with. A newer one begins only where the newest counts anyway,
            # or where the held one has just been buried.
            dead = {lease.id for lease in poisoned}
            standings = ["dead" if lease.id in dead else "open" for lease in mine]
            ended = [
                Ended(lease.pipeline, lease.kind, lease.state, standing, returned[lease.id])
                for lease, standing in zip(mine, standings, strict=True)
            ]
            begin_waiting(tx, self._pipelines, ended)
        ambiguous = sum(1 for lease in mine if lease.kind == DELIVERY)
        self._on_work()
        return Swept(expired=len(mine), poisoned=len(poisoned), ambiguous=ambiguous)

    def _is_poisoned(self, lease: Expired, held: Held) -> bool:
        """Tell whether an item has cost its last worker; a newer revision that replaces it gets tries of its own."""
        if lease.lost_leases + 1 < LOST_LEASES_MAX:
            return False
        declared = self._pipelines.get(lease.pipeline)
        workflow = declared.workflows.get(lease.kind) if declared else None
        return held.waiting_revision is None or (workflow is not None and workflow.in_turn)

    def _bury_poisoned(self, tx: Tx, poisoned: list[Expired]) -> None:
        if not poisoned:
            return
        error = f"the worker vanished {LOST_LEASES_MAX} times while working on this item"
        swept = [lease._replace(token=lease.token + 1) for lease in poisoned]
        rows = tx.many("bury_item", [(lease.id, lease.token, lease.state, "poison", error) for lease in swept])
        buried = {row[0] for row in rows}
        tx.many("insert_journal", [lease.journal_row("dead", error) for lease in swept if lease.id in buried])

    def wake_missed(self) -> int:
        """Let those begin again that await somebody who was accepted at that very moment; some hundreds at a time."""
        with self._database.transaction() as tx:
            woken, self._looked_through = wake_missed(tx, self._pipelines, self._looked_through)
        return woken

    def next_due_ms(self, pipelines: Sequence[str], lanes: Sequence[str]) -> int | None:
        """Return how long until something is due (0: now) in the lanes, or None when nothing waits for time."""
        waits: list[int] = []
        with self._database.reading() as tx:
            for pipeline in pipelines:
                for lane in lanes:
                    row = tx.one("next_due", pipeline=pipeline, lane=lane)
                    waits += [row[0]] if row and row[0] is not None else []
        return max(0, min(waits)) if waits else None

    def with_due(self, pipelines: Sequence[str], lane: str) -> list[str]:
        """Return those of the pipelines that have something due in a lane: looking keeps nobody from writing."""
        with self._database.reading():
            return [pipeline for pipeline in pipelines if self.next_due_ms([pipeline], [lane]) == 0]

    def deliveries_ahead(self, channel: str, item: int) -> int:
        """Count the older deliveries to a channel that are still to be sent."""
        values = {"prefix": f"{channel}/", "prefix_end": f"{channel}0", "id": item}
        with self._database.reading() as tx:
            rows = [tx.one("deliveries_ahead", pipeline=pipeline, **values) for pipeline in self._pipelines]
        return sum(row[0] for row in rows if row is not None)

    def prefetch(self, pipeline: str, refs: Sequence[str]) -> dict[str, bytes]:
        """Return the accepted bodies of other items by ref: what was not accepted is no knowledge."""
        asked = [(n, pipeline, *split_ref(name)) for n, name in enumerate(refs)]
        with self._database.reading() as tx:
            found = {row[1]: (refs[row[0]], row[4]) for row in _lookups(tx, asked) if row[4] is not None}
            bodies = tx.many("read_bodies", [(item, revision) for item, (_, revision) in found.items()])
        return {found[item][0]: bytes(body) for item, _, body in bodies}

    def find(self, pipeline: str, kind: str, key: str) -> Item | None:
        """Return one item."""
        with self._database.reading() as tx:
            row = tx.one("find_item", pipeline=pipeline, kind=kind, key=key)
        return Item(*row) if row else None

    def get(self, item: int) -> Item | None:
        """Return one item by its number."""
        with self._database.reading() as tx:
            row = tx.one("item", id=item)
        return Item(*row) if row else None

    def body(self, item: int, revision: int) -> bytes | None:
        """Return one body."""
        with self._database.reading() as tx:
            rows = tx.many("read_bodies", [(item, revision)])
        return bytes(rows[0][2]) if rows else None

    def life(self, item: int, limit: int = 1000) -> list[JournalRow]:
        """Return an item's journal, oldest first."""
        with self._database.reading() as tx:
            rows = tx.all("life", item=item, limit=limit)
        return [told for row in rows for told in recall(row)]


def _leases(pipeline: str, lane: str, rows: list[Row]) -> list[Lease]:
    return [
        Lease(i, pipeline, k, y, s, t, a, v, r, n, u, f, lost, since, body or b"null", old, lane)
        for i, k, y, s, t, a, v, r, n, u, f, lost, since, _, body, old in rows
    ]


def _lookups(tx: Tx, asked: list[tuple[Any, ...]]) -> list[Row]:
    # FOR UPDATE has no place in a read-only snapshot, so PostgreSQL reads by the plain statement.
    rows = []
    for number, pipeline, kind, key in asked:
        row = tx.one("find_item", pipeline=pipeline, kind=kind, key=key)
        if row is not None:
            rows.append((number, row[0], row[4], row[15], row[16]))
    return rows


def _close(tx: Tx, ordered: list[Settlement]) -> dict[int, Held | None]:
    """Run the guarded update; return, for each item whose lease held, what may wait for its settle."""
    guarded = [_guarded(s) for s in ordered]
    if tx.changes_all(tx.prepare("settle_item", guarded)):
        rows = tx.all("waiting_revisions", first=ordered[0].id, last=ordered[-1].id)
        waiting = {row[0]: Held(*row) for row in rows}
        return {s.id: waiting.get(s.id) for s in ordered}
    return {row[0]: Held(*row) for row in tx.many("settle_item", guarded)}


def _guarded(s: Settlement) -> tuple[Any, ...]:
    error, cause = trouble(s)
    return (
        s.id, s.token, s.state_before, s.state, s.standing, s.lane, s.attempts, s.due_at, s.delay_ms, error, cause,
        s.failing_since, int(s.accepts), int(s.ended == "advanced"),
    )  # fmt: skip


def _ended(settled: list[Settlement], returned: Mapping[int, Held | None]) -> list[Ended]:
    found = [(s, returned[s.id]) for s in settled]
    return [Ended(s.pipeline, s.kind, s.state, s.standing, held) for s, held in found if held is not None]
