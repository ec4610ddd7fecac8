"""The search index as a follower: it asks for the accepted copy behind each card, and makes a document of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidings.follow.search.entry import SearchEntry
from tidings.follow.search.index import SearchIndex
from tidings.follow.search.schema import written
from tidings.model.changes import AcceptedChild, AcceptedCopy, Change, Copies
from tidings.model.clock import YEAR_1_MS, YEAR_9999_MS
from tidings.model.contracts import Executor
from tidings.model.item import ref, split_ref
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Attribute, Document
from tidings.watch.logs import event

MOVED_MAX = 20_000
"""So many items are indexed again because what stands above them changed."""


REPLIES = "replies"
"""An attribute of threaded documents. A source may leave replies out; the links know those that say so themselves."""


class Neighbors(NamedTuple):
    """What stands above items in their threads, and how many right below, by ref."""

    above: Mapping[str, Sequence[str]]
    replies: Mapping[str, int]


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

    def unwritten(self) -> None:
        """Say that nothing waits: documents and position are written by one commit, or not taken in."""

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
        counts: dict[str, int] = {}
        for relation in dict.fromkeys(relations.values()):
            refs = [ref(copy.kind, copy.key) for copy in copies.values() if relations.get(copy.kind) == relation]
            above.update(await self._executor.read(self._copies.ancestors, pipeline, relation, refs))
            moved = await self._below_moved(pipeline, relation, copies, above)
            again = [*(child.id for child in moved), *await self._answered(pipeline, relation, refs)]
            more = await self._executor.read(self._copies.accepted, [item for item in again if item not in copies])
            copies = {**copies, **more}
            names = [ref(copy.kind, copy.key) for copy in more.values()]
            above.update(await self._executor.read(self._copies.ancestors, pipeline, relation, names))
            counts.update(await self._executor.read(self._copies.reply_counts, pipeline, relation, [*refs, *names]))
        await asyncio.to_thread(self._apply, pipeline, items, copies, Neighbors(above, counts), position)

    async def _answered(self, pipeline: str, relation: str, refs: Sequence[str]) -> list[int]:
        """Return what stands in the index above new items without naming them: its number of replies has changed."""
        parents = await self._executor.read(self._copies.unnamed_parents, pipeline, relation, refs) if refs else ()
        return list(await asyncio.to_thread(self._index.threads, pipeline, parents))

    async def _below_moved(
        self, pipeline: str, relation: str, copies: Mapping[int, AcceptedCopy], above: Mapping[str, Sequence[str]]
    ) -> list[AcceptedChild]:
        """Return what stands in the index below items that came, or moved, after it: it belongs to other threads now.

        What comes later in the stream is not in the index yet, and costs nothing here.
        """
        own = {ref(copy.kind, copy.key): copy.id for copy in copies.values()}
        children = await self._children(pipeline, relation, list(own))
        parents = {child.parent: own[child.parent] for child in children if child.ref not in own}
        threads = await asyncio.to_thread(self._index.threads, pipeline, list(parents.values()))
        now = {name: [split_ref(each)[1] for each in (name, *above.get(name, ()))] for name in parents}
        moved = {name for name, item in parents.items() if list(threads.get(item, ())) != now[name]}
        found: dict[str, AcceptedChild] = {}
        level = [child for child in children if child.parent in moved]
        while level and len(found) < MOVED_MAX:
            held = await asyncio.to_thread(self._index.threads, pipeline, [child.id for child in level])
            new = {c.ref: c for c in level if c.id in held and c.ref not in found and c.ref not in own}
            found |= new
            level = await self._children(pipeline, relation, list(new))
        return list(found.values())

    async def _children(self, pipeline: str, relation: str, names: Sequence[str]) -> list[AcceptedChild]:
        """Return the items right below others that the index may hold."""
        children = await self._executor.read(self._copies.children, pipeline, relation, names) if names else ()
        known = set(await asyncio.to_thread(self._index.may_hold, pipeline, [child.id for child in children]))
        return [child for child in children if child.id in known]

    def _apply(
        self,
        pipeline: str,
        items: Sequence[int],
        copies: Mapping[int, AcceptedCopy],
        around: Neighbors,
        position: str,
    ) -> None:
        entries = [entry for copy in copies.values() if (entry := self._entry(pipeline, copy, around)) is not None]
        # Whatever changed and has no document now leaves the index: withdrawn, unreadable, or changed again since. Its
        # next change is still to come.
        try:
            self._put(pipeline, items, entries, position)
        except (OverflowError, TypeError, ValueError):
            # One of them cannot be written, such as a number of seventy bits: only now is it worth looking for it.
            able = [entry for entry in entries if _is_writable(entry)]
            if len(able) == len(entries):
                raise
            self._index.position(pipeline)
            self._put(pipeline, items, able, position)

    def _put(self, pipeline: str, items: Sequence[int], entries: Sequence[SearchEntry], position: str) -> None:
        indexed = {entry.item for entry in entries}
        self._index.apply(pipeline, entries, [item for item in items if item not in indexed], position)

    def _entry(self, pipeline: str, copy: AcceptedCopy, around: Neighbors) -> SearchEntry | None:
        try:
            found = self._pipelines[pipeline].searchable(copy.kind, copy.key, bytes(copy.body))
            if found is not None:
                # The index could not read back what it cannot be asked for, and would take itself for damaged.
                msgspec.convert(dict(found[1].attributes), dict[str, Attribute])
        except Exception as error:  # noqa: BLE001  # one item must not stop the index; it cannot be found until mended
            _tell(pipeline, copy.kind, copy.key, error)
            return None
        if found is None:
            return None
        name = ref(copy.kind, copy.key)
        thread = [copy.key, *(split_ref(each)[1] for each in around.above.get(name, ()))]
        document = _counted(_in_our_calendar(found[1]), around.replies.get(name, 0))
        return SearchEntry(copy.id, pipeline, copy.kind, copy.key, found[0], document, thread)

    async def start_over(self, pipeline: str) -> None:
        """Forget what the index knows of a pipeline."""
        await asyncio.to_thread(self._index.forget, pipeline)


def _in_our_calendar(document: Document) -> Document:
    """Return a document whose time can be told: a hit of the year 30,000,000 could be neither counted nor shown."""
    if YEAR_1_MS <= document.time_ms <= YEAR_9999_MS:
        return document
    return msgspec.structs.replace(document, time_ms=max(YEAR_1_MS, min(YEAR_9999_MS, document.time_ms)))


def _counted(document: Document, replies: int) -> Document:
    """Return a document with as many replies as its thread has."""
    told = document.attributes.get(REPLIES)
    if not isinstance(told, int) or told >= replies:
        return document
    return msgspec.structs.replace(document, attributes={**document.attributes, REPLIES: replies})


def _is_writable(entry: SearchEntry) -> bool:
    try:
        written(entry)
    except Exception as error:  # noqa: BLE001  # whatever it is, it costs only this entry
        _tell(entry.pipeline, entry.kind, entry.key, error)
        return False
    return True


def _tell(pipeline: str, kind: str, key: str, error: Exception) -> None:
    event("not searchable", pipeline=pipeline, kind=kind, key=key, error=f"{type(error).__name__}: {error}")
