"""Shelf and index are read models: they can be rebuilt from the items, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from tidings.model.pipeline import Pipeline
from tidings.store.database import Database, Tx
from tidings.store.shelving import bump, put_presentations, update_id_index

BATCH = 500


class Rebuilder:
    """Rebuilds what readers see."""

    def __init__(self, database: Database, pipelines: Mapping[str, Pipeline]) -> None:
        self._database = database
        self._pipelines = pipelines

    def rebuild(self, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Write every card and document anew from the accepted bodies; return how many items were shown."""
        shown = 0
        for pipeline in self._pipelines.values():
            with self._database.transaction() as tx:
                self._clear(tx, pipeline.name)
            for batch in self._batches(pipeline.name):
                with self._database.transaction() as tx:
                    shown += self._show(tx, pipeline, batch)
                progress(len(batch))
        return shown

    def _clear(self, tx: Tx, pipeline: str) -> None:
        values = {"pipeline": pipeline}
        if self._database.dialect == "sqlite":
            tx.sql(
                "DELETE FROM documents_text WHERE rowid IN (SELECT id FROM documents WHERE pipeline = :pipeline)",
                values,
            )
        tx.sql("DELETE FROM documents WHERE pipeline = :pipeline", values)
        tx.sql("DELETE FROM shelf WHERE pipeline = :pipeline AND id > 0", values)
        bump(tx, pipeline)

    def _batches(self, pipeline: str) -> Iterator[list[tuple[Any, ...]]]:
        after = 0
        while True:
            with self._database.reading() as tx:
                rows = tx.sql(
                    "SELECT i.id, i.kind, i.key, coalesce(i.accepted_revision, 0), b.body FROM items i JOIN bodies b "
                    "ON b.item = i.id AND b.revision = coalesce(i.accepted_revision, i.revision) "
                    "WHERE i.pipeline = :pipeline AND i.id > :after ORDER BY i.id LIMIT :batch",
                    {"pipeline": pipeline, "after": after, "batch": BATCH},
                )
            if not rows:
                return
            yield rows
            after = rows[-1][0]

    def _show(self, tx: Tx, pipeline: Pipeline, batch: list[tuple[Any, ...]]) -> int:
        shown = []
        entries: list[tuple[str, int]] = []
        for item, kind, key, revision, body in batch:
            workflow = pipeline.workflows.get(kind)
            presenters = pipeline.presenters if revision else pipeline.first_cards
            if workflow is None or kind not in presenters:
                continue
            decoded = msgspec.json.decode(bytes(body), type=workflow.body or Any)
            presentation = presenters[kind](key, decoded)
            if presentation is not None:
                if not revision:
                    presentation = msgspec.structs.replace(presentation, document=None)  # only the accepted is found
                shown.append((item, kind, key, revision, presentation))
                if kind in pipeline.first_cards:
                    entries.append((presentation.id, presentation.sort))
        if shown:
            put_presentations(tx, pipeline, shown)
        if entries:
            # An id stays where the merge has put it: a later revision moves its card, never its place in the index.
            update_id_index(tx, pipeline, entries, bump(tx, pipeline.name), are_known_kept=True)
        return len(shown)
