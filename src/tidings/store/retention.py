"""Tidying: what is kept how long, and the tombstones that stay behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from tidings.model.clock import DAY_MS, day_of
from tidings.model.item import ref
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Retention
from tidings.store.database import Database, Row, Tx
from tidings.store.shelving import drop_expired, drop_shown, prune_id_index

BATCH = 500
BUDGET_DAYS = 40
SAMPLE_DAYS = 30
RUN_DAYS = 30
JOURNAL_BATCH = 5_000
TRIM_SECONDS = 3600.0
TOMBSTONE_DAYS = 90
_AT_REST = "i.lease_until IS NULL AND i.standing IN ('done', 'rejected', 'waits')"
_NO_OPEN_DELIVERY = """NOT EXISTS (SELECT 1 FROM links l
    WHERE l.pipeline = i.pipeline AND l.relation = 'announces' AND l.parent = i.kind || ':' || i.key
    AND EXISTS (SELECT 1 FROM items d
        WHERE d.pipeline = l.pipeline AND d.kind = 'delivery' AND d.key = substr(l.child, length('delivery:') + 1)
        AND d.standing IN ('open', 'parked', 'dead') LIMIT 1 OFFSET 0)
    LIMIT 1 OFFSET 0)"""
"""OFFSET keeps both look-ups look-ups: PostgreSQL would join all links with all deliveries."""
DEAD = (
    "SELECT i.id, i.pipeline, i.kind, i.key, i.fingerprint, i.lease_token FROM items i "  # noqa: S608  # constants
    f"WHERE i.standing = 'dead' AND i.lease_until IS NULL AND {_NO_OPEN_DELIVERY}"
)


_HIDES_NOTHING = "(i.accepted_revision IS NULL OR i.accepted_revision = i.revision)"
"""Of a dead letter: no earlier copy was accepted, which readers still see and would lose with it."""


class Leaving(NamedTuple):
    """An item that is about to be removed, as it was seen."""

    id: int
    pipeline: str
    kind: str
    key: str
    fingerprint: str
    token: int


class RetentionStore:
    """Removes what has had its time; every removal of an item leaves a tombstone."""

    def __init__(
        self,
        database: Database,
        pipelines: Mapping[str, Pipeline],
        *,
        dead_letter_days: float = 30,
        journal_days: float = 90,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._dead_letter_days = dead_letter_days
        self._journal_days = journal_days
        self._monotonic = monotonic
        self._next_trim = float("-inf")

    def tidy(self) -> dict[str, int]:
        """Remove everything that has had its time; return counts by what it was."""
        counts = {
            f"retired:{p.name}": sum(self._retire_all(p, rule) for rule in p.retention)
            for p in self._pipelines.values()
        }
        counts["dead letters"] = self._drop_old_dead_letters()
        with self._database.transaction() as tx:
            now = tx.one("now")
            assert now is not None
            counts["tombstones"] = tx.run("forget_tombstones")
            counts["caches"] = tx.run("drop_expired_caches")
            counts["shelf entries"] = drop_expired(tx)
            counts["runs"] = tx.run("drop_old_runs", keep_ms=RUN_DAYS * DAY_MS)
            counts["samples"] = tx.run("drop_old_samples", keep_ms=SAMPLE_DAYS * DAY_MS)
            counts["journal"] = self._trim_journal(tx)
            tx.run("drop_old_budgets", day=day_of(now[0] - BUDGET_DAYS * DAY_MS))
        return {what: count for what, count in counts.items() if count}

    def _trim_journal(self, tx: Tx) -> int:
        """Trim at most once an hour: the journal is ordered by its ids, so finding old rows reads all of it."""
        if self._monotonic() < self._next_trim:
            return 0
        trimmed = tx.run("trim_journal", keep_ms=round(self._journal_days * DAY_MS), limit=JOURNAL_BATCH)
        if trimmed < JOURNAL_BATCH:
            self._next_trim = self._monotonic() + TRIM_SECONDS
        return trimmed

    def _retire_all(self, pipeline: Pipeline, rule: Retention) -> int:
        retired = 0
        for _ in range(200):
            batch = self._retire_batch(pipeline, rule)
            retired += batch
            if batch < BATCH:
                break
        return retired

    def _retire_batch(self, pipeline: Pipeline, rule: Retention) -> int:
        with self._database.transaction() as tx:
            rows = self._overdue(tx, pipeline, rule)
            return self.bury(tx, rows, rule.forget_days)

    def _overdue(self, tx: Tx, pipeline: Pipeline, rule: Retention) -> list[Row]:
        """Choose items at rest, with no delivery open, that a rule no longer keeps."""
        base = (
            "SELECT i.id, i.pipeline, i.kind, i.key, i.fingerprint, i.lease_token FROM items i "  # noqa: S608  # constants
            f"WHERE i.pipeline = :pipeline AND i.kind = :kind AND {_AT_REST} AND {_NO_OPEN_DELIVERY}"
        )
        values = {"pipeline": pipeline.name, "kind": rule.kind, "batch": BATCH}
        if rule.by_id_index and pipeline.id_index is not None:
            return self._left_the_index(tx, pipeline, base, values)
        rows: list[Row] = []
        if rule.days is not None:
            old = {**values, "age_ms": round(rule.days * DAY_MS)}
            rows += tx.sql(f"{base} AND i.changed_at < tidings_now() - :age_ms ORDER BY i.id LIMIT :batch", old)
        if rule.newest is not None and len(rows) < BATCH:
            newest = {**values, "newest": rule.newest}
            floor = (
                "(SELECT min(id) FROM (SELECT id FROM items WHERE pipeline = :pipeline AND kind = :kind "
                "ORDER BY id DESC LIMIT :newest) AS kept)"
            )
            rows += tx.sql(f"{base} AND i.id < {floor} ORDER BY i.id LIMIT :batch", newest)
        return list({row[0]: row for row in rows}.values())[:BATCH]

    def _left_the_index(self, tx: Tx, pipeline: Pipeline, base: str, values: dict[str, object]) -> list[Row]:
        assert pipeline.id_index is not None
        collection = pipeline.collection(pipeline.id_index.collection)
        row = tx.one("shelf_entry", pipeline=pipeline.name, key=f"index:{collection.name}")
        if row is None:
            return []
        kept = {f"{collection.singular}:{i}" for i in msgspec.json.decode(row[1])["ids"]}
        shown = tx.sql(
            "SELECT id, key FROM shelf WHERE pipeline = :pipeline AND collection = :collection",
            {"pipeline": pipeline.name, "collection": collection.name},
        )
        gone = {item for item, key in shown if key not in kept}
        if not gone:
            return []
        rows = tx.sql(f"{base} ORDER BY i.id LIMIT :all", {**values, "all": 100_000})
        return [row for row in rows if row[0] in gone][:BATCH]

    def _drop_old_dead_letters(self) -> int:
        with self._database.transaction() as tx:
            rows = tx.sql(
                f"{DEAD} AND {_HIDES_NOTHING} AND i.changed_at < tidings_now() - :age_ms ORDER BY i.id LIMIT :batch",
                {"age_ms": round(self._dead_letter_days * DAY_MS), "batch": BATCH},
            )
            return self.bury(tx, rows, None)

    def bury(self, tx: Tx, rows: list[Row], forget_days: float | None) -> int:
        """Delete items and all that is theirs; leave tombstones."""
        leaving = [Leaving(*row) for row in rows]
        # Before any row is locked, as the merge does: it is the other writer of the id index.
        leavers = {item.pipeline for item in leaving}
        indexed = [p for name, p in self._pipelines.items() if name in leavers and p.id_index is not None]
        for pipeline in indexed:
            self._database.lock(tx, f"merge:{pipeline.name}")
        deleted: dict[int, int] = dict(tx.many("delete_item", [(item.id, item.token) for item in leaving]))
        gone = [item for item in leaving if item.id in deleted]
        if not gone:
            return 0
        ids = [(item.id,) for item in gone]
        tx.many("delete_bodies", ids)
        tx.many("delete_journal", ids)
        names = [(item.pipeline, ref(item.kind, item.key)) for item in gone]
        tx.many("unsay_as_child", names)
        tx.many("unsay_as_parent", names)
        drop_shown(tx, [item.id for item in gone])
        for pipeline in indexed:
            prune_id_index(tx, pipeline)
        tx.many("insert_tombstone", [self._tombstone(item, deleted[item.id], forget_days) for item in gone])
        return len(gone)

    def _tombstone(self, item: Leaving, intake_id: int, forget_days: float | None) -> tuple[Any, ...]:
        if forget_days is None:
            declared = self._pipelines.get(item.pipeline)
            forget_days = declared.tombstone_days if declared else TOMBSTONE_DAYS
        forget_ms = round(forget_days * DAY_MS)
        return (item.pipeline, item.kind, item.key, item.fingerprint, intake_id, forget_ms)

    def purge(self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None) -> int:
        """Bury dead letters now: one, those of a cause, or all.

        Where readers see an earlier copy, a dead letter goes only by its own number: the item goes with it.
        """
        sql = DEAD if item is not None else f"{DEAD} AND {_HIDES_NOTHING}"
        values: dict[str, object] = {}
        for name, value in (("id", item), ("pipeline", pipeline), ("cause", cause)):
            if value is not None:
                sql += f" AND i.{name} = :{name}"
                values[name] = value
        with self._database.transaction() as tx:
            return self.bury(tx, tx.sql(sql, values), None)
