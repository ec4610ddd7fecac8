"""The intake log: append-only findings, a checkpoint behind which all is merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from tidings.model.clock import DAY_MS
from tidings.model.errors import BadInput
from tidings.model.gathering import Gathered
from tidings.model.item import LOW, Appended, Finding, LogRow
from tidings.model.pipeline import Pipeline, Ranking
from tidings.model.settlement import Merged, Reservation
from tidings.store import reservations
from tidings.store.db.database import Database, Tx
from tidings.store.first_cards import retire
from tidings.store.gathered import put_gathered
from tidings.store.rankings import put_rankings
from tidings.store.reservations import Fingerprint, checkpoint, stretches
from tidings.store.tombstones import Name, find_buried, is_final
from tidings.store.tracks import put_points
from tidings.watch.logs import event

BATCH_BYTES = 16 << 20
"""What is read of the log at once."""
RESERVATIONS_MAX = 8
"""Stretches of one pipeline's log that may be reserved at once."""


class NewFinding(NamedTuple):
    """A row of `insert_findings`; the number keeps the order."""

    number: int
    pipeline: str
    kind: str
    key: str
    fingerprint: str
    priority: int
    payload: bytes
    source: str | None


class CursorRow(NamedTuple):
    """Where a source stands."""

    cursor: str | None
    mark: str | None
    completed_runs: int


class IntakeLog:
    """Discovery writes the log and its cursors; processing writes the checkpoint and the items."""

    def __init__(
        self,
        database: Database,
        pipelines: Mapping[str, Pipeline],
        *,
        keep_days: float = 7,
        on_append: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._keep_ms = round(keep_days * DAY_MS)
        self._on_append = on_append

    @property
    def reservations_max(self) -> int:
        """How many stretches of a pipeline's log one process should reserve at once.

        A server writes one while the next is run. On SQLite a process that runs while it writes keeps the one lock for
        longer, because both need the interpreter: alone it is 14 % faster that way, beside another 5 to 10 % slower.
        """
        return 1 if self._database.has_one_writer else 2

    def append(
        self,
        pipeline: str,
        findings: Sequence[Finding],
        *,
        source: str | None = None,
        cursor: Any = None,
        mark: Any = None,
        completes: bool = False,
        rankings: Sequence[Ranking] = (),
        gathered: Sequence[Gathered] = (),
    ) -> Appended:
        """Write what is new or changed, with what else a source's page or run brings, in one transaction."""
        for finding in findings:
            if not finding.key or "\0" in finding.key or finding.pipeline != pipeline:
                raise BadInput(
                    f"a finding for {pipeline} needs a key without NUL and that pipeline, "
                    f"not {finding.key[:40]!r} of {finding.pipeline!r}"
                )
        with self._database.transaction() as tx:
            # Ids must become visible in order, because the checkpoint is one number. Without the lock, a slow append on
            # PostgreSQL could commit a lower id after the merge has moved past it: its findings would never be read.
            self._database.lock(tx, f"append:{pipeline}")
            appended = self._append(tx, pipeline, findings, source)
            if source is not None and cursor is not None:
                tx.run("save_cursor", source=source, cursor=msgspec.json.encode(cursor).decode())
            if source is not None and completes:
                encoded = None if mark is None else msgspec.json.encode(mark).decode()
                tx.run("complete_run", source=source, mark=encoded)
            if rankings:
                put_rankings(tx, self._pipelines[pipeline], rankings)
                put_points(tx, self._pipelines[pipeline], rankings)
            if gathered:
                put_gathered(tx, self._pipelines[pipeline], gathered)
        if appended.accepted:
            self._on_append()
        return appended

    def _append(self, tx: Tx, pipeline: str, findings: Sequence[Finding], source: str | None) -> Appended:
        if not findings:
            return Appended()
        names = [Name(number, pipeline, each.kind, each.key) for number, each in enumerate(findings)]
        known = self._known(tx, pipeline, names)
        buried = find_buried(tx, names)
        fresh: list[NewFinding] = []
        final: list[int] = []
        new = changed = 0
        for number, finding in enumerate(findings):
            name = (finding.kind, finding.key)
            current = known.get(name)
            tombstone = buried.get(number) if current is None else None
            if (tombstone.fingerprint if tombstone else current) == finding.fingerprint:
                continue
            if tombstone is not None and is_final(self._pipelines, pipeline, finding.kind):
                final.append(number)
                continue
            new, changed = (new + 1, changed) if current is None else (new, changed + 1)
            # One page may hold a key twice. The second finding is compared with the first, not with what is stored.
            known[name] = finding.fingerprint
            fresh.append(
                NewFinding(number, pipeline, *name, finding.fingerprint, finding.priority, finding.payload, source)
            )
        tx.put("insert_findings", fresh)
        return Appended(new, changed, len(findings) - len(fresh) - len(final), tuple(final))

    def _known(self, tx: Tx, pipeline: str, names: Sequence[Name]) -> dict[tuple[str, str], str]:
        """Return the current fingerprint of each kind and key: what waits in the log counts before what is merged."""
        merged = tx.returning(Fingerprint, "known_fingerprints", names)
        waiting = tx.returning(Fingerprint, "waiting_findings", names, checkpoint=checkpoint(tx, pipeline))
        return {(names[each.number].kind, names[each.number].key): each.fingerprint for each in (*merged, *waiting)}

    def claim_findings(
        self, pipeline: str, limit: int = 500, *, lease_seconds: float = 15, may_reserve: bool = True
    ) -> tuple[Merged, Reservation | None]:
        """Take the next findings: reserve them where their items' lives begin with pure steps, else merge them at once.

        What a worker reserved and never wrote is merged first: it may have vanished because of one of these findings,
        so each gets attempts of its own.
        """
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{pipeline}")
            merged = reservations.merge_abandoned(tx, self._pipelines, pipeline)
            reserved = stretches(tx, pipeline)
            after = reserved[-1].through if reserved else checkpoint(tx, pipeline)
            rows = self._next(tx, pipeline, after, limit) if len(reserved) < RESERVATIONS_MAX else []
            if rows and may_reserve and not self._gives_way(tx, pipeline, rows[-1]):
                lease_ms = round(lease_seconds * 1000)
                reservation = reservations.reserve(tx, self._pipelines, pipeline, rows, lease_ms)
                if reservation is not None:
                    return merged, reservation
            # While a stretch is reserved, nothing after it is merged: revisions come in the order of the log.
            if not reserved:
                merged += reservations.merge_next(tx, self._pipelines, pipeline, rows)
            return self._retire(pipeline, merged), None

    def merge(self, pipeline: str, limit: int = 500) -> Merged:
        """Turn the next findings into items without running any; reservations of them are dropped."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{pipeline}")
            rows = self._next(tx, pipeline, checkpoint(tx, pipeline), limit)
            merged = reservations.merge_next(tx, self._pipelines, pipeline, rows)
            if merged.read:
                # Workers that have reserved these findings will find their reservation gone, and write nothing.
                tx.run("drop_reservations", pipeline=pipeline)
            return self._retire(pipeline, merged)

    def _retire(self, pipeline: str, merged: Merged) -> Merged:
        """Retire what the id index has no room for, before anybody works on it; if that fails, the merge stands."""
        if not merged.unlisted:
            return merged
        try:
            with self._database.transaction() as tx:
                return replace(merged, retired=retire(tx, self._pipelines[pipeline], merged.unlisted))
        except Exception as error:  # noqa: BLE001  # whatever it is, findings are merged on
            event("trim failed", pipeline=pipeline, items=len(merged.unlisted), error=str(error), help="tidied later")
            return merged

    def give_back(self, reservation: Reservation) -> Merged:
        """End a reservation whose run was cut off, or whose end cannot be written: each item gets its own attempt."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{reservation.pipeline}")
            tx.run("end_reservation", id=reservation.batch)
            return reservations.merge_abandoned(tx, self._pipelines, reservation.pipeline)

    def _next(self, tx: Tx, pipeline: str, after: int, limit: int) -> list[LogRow]:
        """Read the next findings, fewer where they are large."""
        # The database adds the sizes up first, so that a batch of large pages is not read only to be dropped.
        while limit > 1 and tx.value("size_of_findings", pipeline=pipeline, after=after, limit=limit) > BATCH_BYTES:
            limit //= 2
        return tx.rows(LogRow, "next_findings", pipeline=pipeline, after=after, limit=limit)

    def _gives_way(self, tx: Tx, pipeline: str, last: LogRow) -> bool:
        """Tell whether something more urgent waits behind a bulk: merging without running gets there faster."""
        if last.priority < LOW:
            return False
        return tx.value("any_urgent_finding", pipeline=pipeline, after=last.id) is not None

    def trim(self, pipeline: str) -> int:
        """Drop findings behind the checkpoint that are older than the log is kept."""
        with self._database.transaction() as tx:
            merged_through = checkpoint(tx, pipeline)
            return tx.run("trim_log", pipeline=pipeline, checkpoint=merged_through, keep_ms=self._keep_ms)

    def cursor(self, source: str) -> tuple[Any, Any, bool]:
        """Return a source's cursor, its mark and whether a run has ever completed."""
        with self._database.reading() as tx:
            row = tx.row(CursorRow, "read_cursor", source=source)
        return (_decoded(row.cursor), _decoded(row.mark), row.completed_runs > 0) if row else (None, None, False)

    def unmerged(self, pipeline: str) -> int:
        """Count what waits behind the checkpoint."""
        with self._database.reading() as tx:
            return int(tx.value("count_unmerged", pipeline=pipeline, checkpoint=checkpoint(tx, pipeline)))

    def totals(self, pipeline: str) -> tuple[int, int, int]:
        """Return how many wait, the checkpoint, and how many the log holds."""
        with self._database.reading() as tx:
            place = checkpoint(tx, pipeline)
            unmerged = tx.value("count_unmerged", pipeline=pipeline, checkpoint=place)
            return int(unmerged), place, int(tx.value("count_log", pipeline=pipeline))

    def total(self, pipeline: str) -> int:
        """Count what the log holds."""
        with self._database.reading() as tx:
            return int(tx.value("count_log", pipeline=pipeline))

    def oldest_unmerged_ms(self, pipeline: str) -> int | None:
        """Return how long the first finding behind the checkpoint has waited; None where all is merged."""
        with self._database.reading() as tx:
            age: int | None = tx.value("oldest_unmerged", pipeline=pipeline, checkpoint=checkpoint(tx, pipeline))
        return age

    def rewind(self, pipeline: str) -> None:
        """Merge the whole kept log again; items that know their findings are left alone."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{pipeline}")
            tx.run("move_checkpoint", pipeline=pipeline, checkpoint=0)
            tx.run("drop_reservations", pipeline=pipeline)


def _decoded(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
