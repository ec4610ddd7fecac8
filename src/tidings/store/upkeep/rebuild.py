"""Rebuilds the shelf from the items, byte for byte: it is a read model. Its followers then start over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tidings.model.pipeline import Pipeline
from tidings.model.publication import Presentation, told_failed
from tidings.store.cards import Card, draw_versions, drop_shown, put_cards
from tidings.store.db.database import Database, Tx
from tidings.store.id_index import mend_ids

BATCH = 500


class BodyToShow(NamedTuple):
    """What readers may see of an item; its revision is 0 where none was accepted yet."""

    id: int
    kind: str
    key: str
    revision: int
    body: bytes
    state: str


class LostCard(NamedTuple):
    """A card whose item is gone."""

    id: int


class Rebuilder:
    """Rebuilds what readers see from the items, and items from the log."""

    def __init__(self, database: Database, pipelines: Mapping[str, Pipeline]) -> None:
        self._database = database
        self._pipelines = pipelines

    def rebuild(self, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Write every card again from the accepted bodies; return how many items were shown."""
        shown = 0
        for pipeline in self._pipelines.values():
            with self._database.transaction() as tx:
                tx.run("drop_all_cards", pipeline=pipeline.name)
                # All cards get new versions, and no withdrawal tells of those that do not come back. Followers that
                # know older versions have to start over.
                tx.put("raise_horizon", [(pipeline.name, draw_versions(tx, pipeline.name))])
            # A transaction for each batch, so that workers can settle in between.
            for batch in self._batches(pipeline.name):
                with self._database.transaction() as tx:
                    shown += _show(tx, pipeline, batch)
                progress(len(batch))
            self._list_again(pipeline)
        return shown

    def recover_lost(self) -> list[str]:
        """Rebuild the items of every pipeline that has none although its log says it should; return their names."""
        with self._database.reading() as tx:
            lost = [name for name in self._pipelines if tx.value("items_are_lost", pipeline=name)]
        for name in lost:
            self.begin_items_again(name)
        return lost

    def begin_items_again(self, pipeline: str) -> int:
        """Let the merge read the whole kept log of a pipeline again; return how many findings it holds.

        Items that are there know their findings and are left alone; tombstones stand. What lost items have left behind
        is removed first: their cards would keep the keys of those that are born in their place.
        """
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{pipeline}")
            drop_shown(tx, [row.id for row in tx.rows(LostCard, "lost_cards", pipeline=pipeline)])
            tx.run("drop_lost_bodies")
            tx.run("drop_lost_journal")
            tx.run("move_checkpoint", pipeline=pipeline, checkpoint=0)
            tx.run("drop_reservations", pipeline=pipeline)
            return int(tx.value("count_log", pipeline=pipeline))

    def _list_again(self, pipeline: Pipeline) -> None:
        """Enter every card in the id index, and take out what has none: an id stays where the merge has put it."""
        if pipeline.id_index is None:
            return
        with self._database.transaction() as tx:
            self._database.lock(tx, f"merge:{pipeline.name}")
            mend_ids(tx, pipeline)

    def _batches(self, pipeline: str) -> Iterator[list[BodyToShow]]:
        after = 0
        while True:
            with self._database.reading() as tx:
                batch = tx.rows(BodyToShow, "bodies_to_show", pipeline=pipeline, after=after, limit=BATCH)
            if not batch:
                return
            yield batch
            after = batch[-1].id


def _show(tx: Tx, pipeline: Pipeline, batch: list[BodyToShow]) -> int:
    shown = []
    for item in batch:
        presentation = _presentation(pipeline, item)
        if presentation is not None:
            shown.append(Card(item.id, item.revision, pipeline.show(presentation)))
    if shown:
        put_cards(tx, pipeline, shown)
    return len(shown)


def _presentation(pipeline: Pipeline, item: BodyToShow) -> Presentation | None:
    """Make an item's card."""
    workflow = pipeline.workflows.get(item.kind)
    presenters = pipeline.presenters if item.revision else pipeline.first_cards
    if workflow is None or item.kind not in presenters:
        return None
    presentation = presenters[item.kind](item.key, workflow.decode(bytes(item.body)))
    is_failed = bool(item.revision) and item.state in workflow.failures
    return told_failed(presentation, item.state) if presentation is not None and is_failed else presentation
