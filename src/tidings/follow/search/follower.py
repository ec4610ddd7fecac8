"""The search index as a follower: it asks for the accepted copy behind each card, and makes a document of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from tidings.follow.search.entry import SearchEntry
from tidings.follow.search.index import SearchIndex
from tidings.model.changes import AcceptedCopy, Change, Copies
from tidings.model.contracts import Executor
from tidings.model.item import ref, split_ref
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Attribute
from tidings.watch.logs import event


class SearchFollower:
    """Feeds the search index."""

    name = "search"

    def __init__(
        self, index: SearchIndex, copies: Copies, pipelines: Mapping[str, Pipeline], executor: Executor
    ) -> None:
        self._index = index
        self._copies = copies
        self._pipelines = pipelines
        self._executor = executor

    async def is_our_turn(self) -> bool:
        """Tell whether this process writes the index; the others read what it has committed."""
        return await asyncio.to_thread(lambda: self._index.is_writer)

    async def position(self, pipeline: str) -> str | None:
        """Return the cursor the index has followed to."""
        return await asyncio.to_thread(self._index.position, pipeline)

    async def follow(self, pipeline: str, changes: Sequence[Change], position: str) -> None:
        """Index what the changed cards show now; what shows nothing any more leaves the index."""
        items = [change.item for change in changes if change.item > 0]
        # Entries of no item, such as an id index, have ids below zero and are nothing to search for.
        shown = [change.item for change in changes if change.item > 0 and change.value is not None]
        copies = await self._executor.read(self._copies.accepted, shown)
        relations = {each.kind: each.relation for each in self._pipelines[pipeline].collections if each.relation}
        above: dict[str, Sequence[str]] = {}
        for relation in dict.fromkeys(relations.values()):
            refs = [ref(copy.kind, copy.key) for copy in copies.values() if relations.get(copy.kind) == relation]
            above.update(await self._executor.read(self._copies.ancestors, pipeline, relation, refs))
        await asyncio.to_thread(self._apply, pipeline, items, copies, above, position)

    def _apply(
        self,
        pipeline: str,
        items: Sequence[int],
        copies: Mapping[int, AcceptedCopy],
        above: Mapping[str, Sequence[str]],
        position: str,
    ) -> None:
        entries = [entry for copy in copies.values() if (entry := self._entry(pipeline, copy, above)) is not None]
        # Whatever changed and has no document now leaves the index: withdrawn, unreadable, or changed again since. Its
        # next change is still to come.
        indexed = {entry.item for entry in entries}
        self._index.apply(pipeline, entries, [item for item in items if item not in indexed], position)

    def _entry(self, pipeline: str, copy: AcceptedCopy, above: Mapping[str, Sequence[str]]) -> SearchEntry | None:
        try:
            found = self._pipelines[pipeline].searchable(copy.kind, copy.key, bytes(copy.body))
            if found is not None:
                # The index could not read back what it cannot be asked for, and would take itself for damaged.
                msgspec.convert(dict(found[1].attributes), dict[str, Attribute])
        except Exception as error:  # noqa: BLE001  # one item must not stop the index; it cannot be found until mended
            event(
                "not searchable",
                pipeline=pipeline,
                kind=copy.kind,
                key=copy.key,
                error=f"{type(error).__name__}: {error}",
            )
            return None
        if found is None:
            return None
        thread = [copy.key, *(split_ref(name)[1] for name in above.get(ref(copy.kind, copy.key), ()))]
        return SearchEntry(copy.id, pipeline, copy.kind, copy.key, found[0], found[1], thread)

    async def start_over(self, pipeline: str) -> None:
        """Forget what the index knows of a pipeline."""
        await asyncio.to_thread(self._index.forget, pipeline)
