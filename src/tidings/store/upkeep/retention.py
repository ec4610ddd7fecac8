"""Retention: what is kept how long. Every item that is removed leaves a tombstone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tidings.model.clock import DAY_MS, day_of
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Retention
from tidings.store import burials
from tidings.store.burials import Leaving
from tidings.store.cards import drop_expired
from tidings.store.changes import forget_withdrawals
from tidings.store.db.database import Database, Tx
from tidings.store.first_cards import OUT_OF_LIST
from tidings.store.id_index import mend_ids
from tidings.store.tombstones import forget_tombstones

BATCH = 500
BATCHES_MAX = 200
BUDGET_DAYS = 40
SAMPLE_DAYS = 30
RUN_DAYS = 30
WORK_RUN_DAYS = 2
"""There may be one a minute for each pipeline and process."""
TRACK_DAYS = 30
TRACKS_MAX = 20_000
"""So many cards have a history, those whose numbers changed last."""
JOURNAL_BATCH = 5_000
TRIM_SECONDS = 3600.0
OLD_DEAD = "dead letters are kept no longer"


class RetentionStore:
    """Removes what is older than its rule allows; every removal of an item leaves a tombstone."""

    def __init__(
        self,
        database: Database,
        pipelines: Mapping[str, Pipeline],
        *,
        dead_letter_days: float = 30,
        journal_days: float = 90,
        intake_days: float = 7,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._dead_letter_days = dead_letter_days
        self._journal_days = journal_days
        self._intake_days = intake_days
        self._monotonic = monotonic
        self._next_trim = float("-inf")

    def tidy(self) -> dict[str, int]:
        """Remove everything that is older than its rule allows; return counts by what it was."""
        for pipeline in self._pipelines.values():
            self._mend_index(pipeline)
        counts = {
            f"retired:{p.name}": sum(self._retire_all(p, rule) for rule in p.retention)
            for p in self._pipelines.values()
        }
        counts["dead letters"] = self._drop_old_dead_letters()
        with self._database.transaction() as tx:
            counts["tombstones"] = forget_tombstones(tx)
            counts["caches"] = tx.run("drop_expired_caches")
            counts["shelf entries"] = drop_expired(tx)
            counts["withdrawals"] = forget_withdrawals(tx, round(self._intake_days * DAY_MS))
            counts["runs"] = tx.run("drop_old_runs", keep_ms=RUN_DAYS * DAY_MS)
            counts["work runs"] = tx.run("drop_old_work_runs", keep_ms=WORK_RUN_DAYS * DAY_MS)
            counts["samples"] = tx.run("drop_old_samples", keep_ms=SAMPLE_DAYS * DAY_MS)
            counts["tracks"] = tx.run("drop_old_tracks", keep_ms=TRACK_DAYS * DAY_MS, newest=TRACKS_MAX)
            counts["wishes"] = tx.run("drop_old_wishes", keep_ms=DAY_MS)
            counts["marks"] = tx.run("drop_lost_marks")
            counts["journal"] = self._trim_journal(tx)
            tx.run("drop_old_budgets", day=day_of(tx.value("now") - BUDGET_DAYS * DAY_MS))
        return {what: count for what, count in counts.items() if count}

    def _mend_index(self, pipeline: Pipeline) -> None:
        """Take out ids whose cards were withdrawn or grew too old, and enter what is missing."""
        if pipeline.id_index is None:
            return
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{pipeline.name}")
            mend_ids(tx, pipeline)

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
        # Bounded, because the sweep of expired leases waits for it. The rest is for the next time.
        for _ in range(BATCHES_MAX):
            batch = self._retire_batch(pipeline, rule)
            retired += batch
            if batch < BATCH:
                break
        return retired

    def _retire_batch(self, pipeline: Pipeline, rule: Retention) -> int:
        with self._database.transaction() as tx:
            if rule.by_id_index and pipeline.id_index is not None:
                self._database.lock(tx, f"merge:{pipeline.name}")
                leaving = self._out_of_list(tx, pipeline, rule.kind, pipeline.id_index.days)
                return self.bury(tx, leaving, rule.forget_days, OUT_OF_LIST)
            return self.bury(tx, self._overdue(tx, pipeline, rule), rule.forget_days, "it was kept as long as was set")

    def _overdue(self, tx: Tx, pipeline: Pipeline, rule: Retention) -> list[Leaving]:
        """Choose items at rest, with no delivery open, that a rule no longer keeps."""
        kind = {"pipeline": pipeline.name, "kind": rule.kind, "limit": BATCH}
        overdue: list[Leaving] = []
        if rule.days is not None:
            overdue += tx.rows(Leaving, "items_past_age", **kind, age_ms=round(rule.days * DAY_MS))
        if rule.newest is not None and len(overdue) < BATCH:
            overdue += tx.rows(Leaving, "items_beyond_newest", **kind, newest=rule.newest)
        return list({item.id: item for item in overdue}.values())[:BATCH]

    def _out_of_list(self, tx: Tx, pipeline: Pipeline, kind: str, days: int) -> list[Leaving]:
        """Choose items that the id index does not list, whatever their standing; only what is leased waits.

        What never had a card, because none could be made, goes when it is as old as the list may be.
        """
        gone = sorted(card.id for card in mend_ids(tx, pipeline).values())
        leaving = tx.rows(
            Leaving, "cardless_items", pipeline=pipeline.name, kind=kind, age_ms=days * DAY_MS, limit=BATCH
        )
        # Only some of them are free to go, so one batch of them may not fill a batch of ours.
        for start in range(0, len(gone), BATCH):
            some = [(item,) for item in gone[start : start + BATCH]]
            leaving += [item for item in tx.returning(Leaving, "leaving_among", some) if item.kind == kind]
            if len(leaving) >= BATCH:
                break
        return leaving[:BATCH]

    def _drop_old_dead_letters(self) -> int:
        age_ms = round(self._dead_letter_days * DAY_MS)
        with self._database.transaction() as tx:
            return self.bury(tx, tx.rows(Leaving, "old_dead_letters", age_ms=age_ms, limit=BATCH), None, OLD_DEAD)

    def bury(self, tx: Tx, leaving: list[Leaving], forget_days: float | None, reason: str) -> int:
        """Delete items and all that is theirs; leave tombstones."""
        # The merge is the other writer of the id index. It takes this lock before it locks any item, and so do we:
        # in another order the two could wait for each other.
        leavers = {item.pipeline for item in leaving}
        indexed = [p for name, p in self._pipelines.items() if name in leavers and p.id_index is not None]
        for pipeline in indexed:
            self._database.lock(tx, f"merge:{pipeline.name}")
        gone = burials.bury(tx, self._pipelines, leaving, reason=reason, forget_days=forget_days)
        for pipeline in indexed if gone else ():
            mend_ids(tx, pipeline)
        return len(gone)

    def purge(self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None) -> int:
        """Bury dead letters now: one, those of a cause, or all.

        Where readers see an earlier copy, a dead letter goes only by its own number: the item goes with it.
        """
        with self._database.transaction() as tx:
            dead = tx.rows(Leaving, "chosen_dead_letters", id=item, pipeline=pipeline, cause=cause)
            return self.bury(tx, dead, None, "a person removed it")
