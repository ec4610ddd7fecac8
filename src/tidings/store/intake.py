"""The intake log: append-only findings, a checkpoint behind which all is merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from tidings.model.clock import DAY_MS
from tidings.model.errors import BadInput
from tidings.model.item import LOW, Appended, Finding
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Ahead, LogRow, Merged, Settlement
from tidings.store.adopting import Adopted, adopt, arrivals
from tidings.store.ahead import Birth, bear, prepare, take
from tidings.store.database import Database, Tx
from tidings.store.shelving import put_first_cards
from tidings.store.tombstones import find_buried, is_final

BATCH_BYTES = 16 << 20
"""What is read of the log at once."""
AHEADS_MAX = 8
"""Batches of one pipeline that may be run ahead at once."""


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
    def abreast(self) -> int:
        """How many batches of a pipeline one process does well to run ahead.

        A server writes one while the next is run; on SQLite the writing thread would wait for the interpreter.
        """
        return 2 if self._database.dialect == "postgres" else 1

    def append(
        self,
        pipeline: str,
        findings: Sequence[Finding],
        *,
        source: str | None = None,
        cursor: Any = None,
        mark: Any = None,
        completes: bool = False,
    ) -> Appended:
        """Write what is new or changed, with the source's cursor (and mark), in one transaction."""
        for finding in findings:
            if not finding.key or "\0" in finding.key or finding.pipeline != pipeline:
                raise BadInput(
                    f"a finding for {pipeline} needs a key without NUL and that pipeline, "
                    f"not {finding.key[:40]!r} of {finding.pipeline!r}"
                )
        with self._database.transaction() as tx:
            # Ids must become visible in order: draw them only while holding the pipeline's lock.
            self._database.lock(tx, f"append:{pipeline}")
            appended = self._append(tx, pipeline, findings, source)
            if source is not None and cursor is not None:
                tx.run("save_cursor", source=source, cursor=msgspec.json.encode(cursor).decode())
            if source is not None and completes:
                encoded = None if mark is None else msgspec.json.encode(mark).decode()
                tx.run("complete_run", source=source, mark=encoded)
        if appended.accepted:
            self._on_append()
        return appended

    def _append(self, tx: Tx, pipeline: str, findings: Sequence[Finding], source: str | None) -> Appended:
        if not findings:
            return Appended()
        checkpoint = self.checkpoint(tx, pipeline)
        names = [(n, pipeline, f.kind, f.key) for n, f in enumerate(findings)]
        known: dict[tuple[str, str], str] = {}
        for number, fingerprint in tx.many("known_fingerprints", names):
            known[findings[number].kind, findings[number].key] = fingerprint
        for number, fingerprint in tx.many("waiting_findings", [(n, p, k, checkpoint, y) for n, p, k, y in names]):
            known[findings[number].kind, findings[number].key] = fingerprint
        buried = find_buried(tx, names)
        fresh: list[Finding] = []
        final: list[int] = []
        new = changed = 0
        for number, finding in enumerate(findings):
            name = (finding.kind, finding.key)
            seen = known.get(name)
            tombstone = buried.get(number) if seen is None else None
            if (tombstone.fingerprint if tombstone else seen) == finding.fingerprint:
                continue
            if tombstone is not None and is_final(self._pipelines, pipeline, finding.kind):
                final.append(number)
                continue
            new, changed = (new + 1, changed) if seen is None else (new, changed + 1)
            known[name] = finding.fingerprint
            fresh.append(finding)
        tx.many(
            "insert_finding",
            [(pipeline, f.kind, f.key, f.fingerprint, f.priority, f.payload, source) for f in fresh],
        )
        return Appended(new, changed, len(findings) - len(fresh) - len(final), tuple(final))

    def checkpoint(self, tx: Tx, pipeline: str) -> int:
        """Return the id of the last merged finding; a foreign one counts as none."""
        # Trimming takes a finding only together with all before it. A checkpoint that is not in the log while older
        # findings are is not ours: merging from the start skips nothing, and what each item remembers of the log
        # keeps anything from being merged twice.
        row = tx.one("checkpoint", pipeline=pipeline)
        return int(row[0]) if row else 0

    def merge(self, pipeline: str, limit: int = 500) -> Merged:
        """Turn the next findings, in log order, into items; move the checkpoint with them."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{pipeline}")
            checkpoint = self.checkpoint(tx, pipeline)
            merged = self._merge(tx, pipeline, checkpoint, self._next(tx, pipeline, checkpoint, limit))
            if merged.read:
                tx.run("drop_aheads", pipeline=pipeline)
            return merged

    def prepare(self, ran: Ahead, settlements: Sequence[Settlement]) -> Birth:
        """Make what was run ahead ready to be written, which needs no transaction."""
        return prepare(self._database, self._pipelines[ran.pipeline], ran, settlements)

    def merge_ahead(
        self,
        pipeline: str,
        ran: Ahead | None = None,
        birth: Birth | None = None,
        *,
        limit: int = 500,
        lease_seconds: float = 15,
    ) -> tuple[Merged, Ahead | None]:
        """Give birth to what was run ahead, then take the next findings: to be run ahead, or else merged at once.

        With a limit of 0 nothing more is taken.
        """
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{pipeline}")
            merged = self._merge_abandoned(tx, pipeline, ran)
            if ran is not None:
                merged += self._bear(tx, ran, birth)
            if not limit or merged.stale or merged.waits:
                return merged, None
            aheads = tx.all("aheads", pipeline=pipeline)
            after = aheads[-1][1] if aheads else self.checkpoint(tx, pipeline)
            rows = self._next(tx, pipeline, after, limit) if len(aheads) < AHEADS_MAX else []
            if rows and not self._gives_way(tx, pipeline, rows[-1]):
                taken = take(tx, self._pipelines, pipeline, rows, round(lease_seconds * 1000))
                if taken is not None:
                    return merged, taken
            return merged if aheads else merged + self._merge(tx, pipeline, after, rows), None

    def comes_next(self, ran: Ahead) -> bool:
        """Tell whether a batch that was run ahead can be written: all before it is, or never will be by its runner."""
        with self._database.reading() as tx:
            aheads = tx.all("aheads", pipeline=ran.pipeline)
        return not any(through < ran.through and left_ms > 0 for _, through, left_ms in aheads)

    def _merge_abandoned(self, tx: Tx, pipeline: str, ran: Ahead | None, limit: int = 500) -> Merged:
        """Merge what another runner took and never wrote, if all before it is written.

        It may have vanished because of one of these findings: each gets attempts of its own.
        """
        aheads = tx.all("aheads", pipeline=pipeline)
        if not aheads or aheads[0][2] > 0 or (ran is not None and aheads[0][0] == ran.token):
            return Merged()
        token, through, _ = aheads[0]
        checkpoint = self.checkpoint(tx, pipeline)
        rows = [row for row in self._next(tx, pipeline, checkpoint, limit) if row[0] <= through]
        if not rows or rows[-1][0] == through:
            tx.run("drop_ahead", id=token)
        return self._merge(tx, pipeline, checkpoint, rows)

    def _bear(self, tx: Tx, ran: Ahead, birth: Birth | None) -> Merged:
        aheads = [row[0] for row in tx.all("aheads", pipeline=ran.pipeline)]
        if ran.token not in aheads:
            return Merged(stale=len(ran.rows))
        if aheads[0] != ran.token:
            return Merged(waits=True)
        tx.run("drop_ahead", id=ran.token)
        tx.run("move_checkpoint", pipeline=ran.pipeline, checkpoint=ran.through)
        adopted, written, woken = bear(tx, self._pipelines, ran, birth)
        merged = _merged(ran.rows, adopted)
        ahead = birth.settlements if birth is not None else []
        vain = {s.id for s in ahead} - {s.id for s in written} if len(ahead) > len(written) else ()
        born = merged.born + len(written)
        return replace(merged, born=born, ran=len(written), vain=frozenset(vain), woken=woken)

    def _next(self, tx: Tx, pipeline: str, after: int, limit: int) -> list[LogRow]:
        """Read the next findings, fewer where they are large."""
        asked = {"pipeline": pipeline, "checkpoint": after}
        while limit > 1 and (size := tx.one("size_of_findings", **asked, limit=limit)) and size[0] > BATCH_BYTES:
            limit //= 2
        return tx.all("unmerged_findings", **asked, limit=limit)

    def _gives_way(self, tx: Tx, pipeline: str, last: LogRow) -> bool:
        """Tell whether something more urgent than a bulk waits behind it: merging alone gets there faster."""
        place, _, _, _, priority, _ = last
        return priority >= LOW and tx.one("urgent_finding", pipeline=pipeline, after=place) is not None

    def _merge(self, tx: Tx, pipeline: str, checkpoint: int, rows: Sequence[LogRow]) -> Merged:
        if not rows:
            return Merged(checkpoint=checkpoint)
        adopted = adopt(tx, self._pipelines, arrivals(pipeline, rows))
        self._show_at_once(tx, pipeline, adopted)
        tx.run("move_checkpoint", pipeline=pipeline, checkpoint=rows[-1][0])
        return _merged(rows, adopted)

    def _show_at_once(self, tx: Tx, pipeline: str, adopted: Adopted) -> None:
        declared = self._pipelines.get(pipeline)
        if declared is not None and declared.first_cards:
            put_first_cards(tx, declared, [*adopted.born, *adopted.unseen])

    def trim(self, pipeline: str) -> int:
        """Drop findings behind the checkpoint that are older than the log is kept."""
        with self._database.transaction() as tx:
            checkpoint = self.checkpoint(tx, pipeline)
            return tx.run("trim_log", pipeline=pipeline, checkpoint=checkpoint, keep_ms=self._keep_ms)

    def cursor(self, source: str) -> tuple[Any, Any, bool]:
        """Return a source's cursor, its mark and whether a run has ever completed."""
        with self._database.reading() as tx:
            row = tx.one("read_cursor", source=source)
        if row is None:
            return None, None, False
        cursor, mark, runs = row
        return _decoded(cursor), _decoded(mark), runs > 0

    def unmerged(self, pipeline: str) -> int:
        """Count what waits behind the checkpoint."""
        with self._database.reading() as tx:
            row = tx.one("count_unmerged", pipeline=pipeline, checkpoint=self.checkpoint(tx, pipeline))
        return int(row[0]) if row else 0

    def totals(self, pipeline: str) -> tuple[int, int, int]:
        """Return how many wait, the checkpoint, and how many the log holds."""
        with self._database.reading() as tx:
            checkpoint = self.checkpoint(tx, pipeline)
            unmerged = tx.one("count_unmerged", pipeline=pipeline, checkpoint=checkpoint)
            total = tx.one("count_log", pipeline=pipeline)
        assert unmerged is not None
        assert total is not None
        return int(unmerged[0]), checkpoint, int(total[0])

    def rewind(self, pipeline: str) -> None:
        """Merge the whole kept log again; items that know their findings are left alone."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{pipeline}")
            tx.run("move_checkpoint", pipeline=pipeline, checkpoint=0)
            tx.run("drop_aheads", pipeline=pipeline)


def _merged(rows: Sequence[LogRow], adopted: Adopted) -> Merged:
    return Merged(
        len(rows),
        len(adopted.born),
        len(adopted.changed),
        adopted.unchanged,
        checkpoint=rows[-1][0],
    )


def _decoded(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
