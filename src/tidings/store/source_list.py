"""Which sources there are, and what they are called.

A source that has an address is named once and keeps its name: cursor, schedule and the keys of its items hang on it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from tidings.model.errors import BadInput, Misconfigured
from tidings.model.pipeline import Addressed, Pipeline, PlacedSource
from tidings.model.source_definition import SourceDefinition
from tidings.store.db.database import Database, Tx
from tidings.watch.logs import event


class NamedSource(NamedTuple):
    """A source's name as it is kept, and where the source comes from: `file` or `store`."""

    name: str
    pipeline: str
    address: str
    origin: str
    options: str
    changed_at: int


class KeptCursor(NamedTuple):
    """Where a source stands, as it was stored."""

    source: str
    cursor: str


class SourceList:
    """The sources of all pipelines by name, the same in every process."""

    def __init__(self, database: Database, pipelines: Mapping[str, Pipeline]) -> None:
        self._database = database
        self._pipelines = pipelines
        self._version: str | None = None
        self._current: dict[str, PlacedSource] | None = None

    def current(self) -> Mapping[str, PlacedSource]:
        """Return every source by its name; read again only where the list has changed."""
        with self._database.reading() as tx:
            version: str | None = tx.value("source_list_version")
            if self._current is None or version != self._version:
                self._current = {each.source.name: each for p in self._pipelines.values() for each in _placed(tx, p)}
                self._version = version
        return self._current

    def declare(self) -> Mapping[str, PlacedSource]:
        """Keep the names of all sources, and make each known to the schedule: a new one is due at once."""
        with self._database.transaction() as tx:
            self._database.lock(tx, "sources")
            for pipeline in self._pipelines.values():
                sources = [each.source for each in _placed(tx, pipeline)]
                tx.put("declare_schedules", [(source.name, pipeline.name) for source in sources])
                kept = {(row.name, row.address, row.origin) for row in tx.rows(NamedSource, "source_list")}
                addressed = [(s.name, s.address, "file") for s in _named(tx, pipeline) if isinstance(s, Addressed)]
                if missing := [each for each in addressed if each not in kept]:
                    rows = [(name, pipeline.name, address, origin, "{}") for name, address, origin in missing]
                    tx.put("put_sources", rows)
                    tx.run("raise_source_list_version")
        return self.current()


def _placed(tx: Tx, pipeline: Pipeline) -> list[PlacedSource]:
    """Return a pipeline's sources: those of the file, then those of the store."""
    named = _named(tx, pipeline)
    addresses = {source.address for source in named if isinstance(source, Addressed)}
    placed = [PlacedSource(pipeline, source) for source in named]
    for row in tx.rows(NamedSource, "source_list"):
        # What the file names too is the file's.
        if row.pipeline == pipeline.name and row.origin == "store" and row.address not in addresses:
            try:
                source = made(pipeline, row.name, msgspec.json.decode(row.options, type=SourceDefinition))
            except (BadInput, Misconfigured, msgspec.MsgspecError) as error:
                # A newer release may have written it. It stays, and is asked again when it can be read.
                event("source cannot be made", level=logging.WARNING, source=row.name, error=str(error))
            else:
                placed.append(PlacedSource(pipeline, source, "store"))
    return placed


def made(pipeline: Pipeline, name: str, definition: SourceDefinition) -> Addressed:
    """Make a source under its whole name."""
    return pipeline.source(name.removeprefix(f"{pipeline.name}."), definition).called(name)


def _named(tx: Tx, pipeline: Pipeline) -> list[Any]:
    """Return a pipeline's sources under the names that they have or will get."""
    listed = [source for source in pipeline.sources if isinstance(source, Addressed)]
    rows = [row for row in tx.rows(NamedSource, "source_list") if row.pipeline == pipeline.name]
    names = {row.address: row.name for row in rows}
    missing = [source for source in listed if source.address not in names]
    if missing:
        in_use = {names[source.address] for source in listed if source.address in names}
        names |= _adopted(tx, pipeline.name, missing, in_use | {row.name for row in rows if row.origin == "store"})
        taken = (
            {row.name for row in rows}
            | set(names.values())
            | {s.name for s in pipeline.sources} - {s.name for s in listed}
        )
        for source in missing:
            if source.address not in names:
                names[source.address] = free_name(source, taken)
                taken.add(names[source.address])
    return [s.called(names[s.address]) if isinstance(s, Addressed) else s for s in pipeline.sources]


def _adopted(tx: Tx, pipeline: str, missing: Iterable[Addressed], in_use: set[str]) -> dict[str, str]:
    """Find names by what the cursors tell: a source named by an earlier release, or one whose address has changed."""
    kept = [row for row in tx.rows(KeptCursor, "cursors_of", pipeline=pipeline) if row.source not in in_use]
    found: dict[str, str] = {}
    for source in missing:
        told = [(row.source, source.places(msgspec.json.decode(row.cursor))) for row in kept]
        # The configured address says more than the one where a feed was found: two sites may announce the same feed.
        for place in (0, 1):
            for name, places in told:
                if name not in found.values() and source.address in places[place : place + 1]:
                    found.setdefault(source.address, name)
    return found


def free_name(source: Addressed, taken: set[str]) -> str:
    """Return what a new source is called: as it calls itself, with a mark of its address where that is taken."""
    if source.name not in taken:
        return source.name
    mark = blake2b(source.address.encode(), digest_size=8).hexdigest()
    return next(name for size in (6, 16) if (name := f"{source.name}-{mark[:size]}") not in taken)
