"""Sources that people add, change and remove while everything runs. Every process sees the new list within seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from tidings.model.errors import BadInput
from tidings.model.pipeline import Defined, Pipeline, PlacedSource
from tidings.model.source_definition import NamedDefinition, SourceDefinition, checked_definition
from tidings.store import burials
from tidings.store.burials import Leaving
from tidings.store.db.database import Database
from tidings.store.source_list import NamedSource, SourceList, free_name, made
from tidings.store.tombstones import forget_tombstones

SOURCES_MAX = 20_000
BATCH = 500
BATCHES_MAX = 20
FORGOTTEN_MS = 600_000
"""A worker that held one of its items, or a poller that still asked it, is done after that time."""
REMOVED = "its source was removed, and its items with it"

ItemsFate = Literal["keep", "forget"]


class AlreadyWatched(BadInput):
    """The address belongs to a source that there is."""

    def __init__(self, name: str, where: str = "") -> None:
        super().__init__(f"address: it is watched already, as {name}{where}")
        self.name = name


class ForgottenSource(NamedTuple):
    """A removed source whose items are to go too."""

    name: str
    pipeline: str
    since_ms: int


class SourceEdits:
    """Adds, changes and removes sources of the store; those of the file are the file's."""

    def __init__(self, database: Database, pipelines: Mapping[str, Pipeline], source_list: SourceList) -> None:
        self._database = database
        self._pipelines = pipelines
        self._list = source_list

    def named(self, name: str) -> NamedDefinition | None:
        """Return a source as it was asked for, of the file or the store."""
        placed = self._list.current().get(name)
        if placed is None:
            return None
        definition = placed.source.definition if isinstance(placed.source, Defined) else None
        return NamedDefinition(name=name, pipeline=placed.pipeline.name, origin=placed.origin, definition=definition)

    def add(self, pipeline: str, raw: Mapping[str, Any], *, dry_run: bool = False) -> str:
        """Add a source; return its name. It is due at once. One that was removed before gets its name again."""
        declared = self._pipeline(pipeline)
        definition = checked_definition(raw)
        source = declared.source("", definition)
        with self._database.transaction() as tx:
            self._database.lock(tx, "sources")
            rows = tx.rows(NamedSource, "source_list")
            named = next((r for r in rows if r.pipeline == pipeline and r.address == source.address), None)
            if named is not None and (placed := self._list.current().get(named.name)) is not None:
                raise AlreadyWatched(named.name, _from_file(placed))
            if len(rows) >= SOURCES_MAX:
                raise BadInput(f"there are {len(rows):,} sources already, which is the most")
            name = named.name if named else free_name(source, {row.name for row in rows} | set(self._list.current()))
            if dry_run:
                return name
            options = msgspec.json.encode(definition).decode()
            if named is not None:
                tx.run("change_source", name=name, address=source.address, origin="store", options=options)
            else:
                tx.put("put_sources", [(name, pipeline, source.address, "store", options)])
            tx.put("declare_schedules", [(name, pipeline)])
            tx.run("raise_source_list_version")
        return name

    def edit(self, name: str, changes: Mapping[str, Any]) -> SourceDefinition:
        """Change some fields of a source (None: as by default) and make it due; return it as it is then."""
        with self._database.transaction() as tx:
            self._database.lock(tx, "sources")
            placed = self._editable(name)
            values = msgspec.to_builtins(placed.source.definition) if isinstance(placed.source, Defined) else {}
            values = {key: value for key, value in {**values, **changes}.items() if value is not None}
            definition = checked_definition(values)
            source = made(placed.pipeline, name, definition)
            rows = [row for row in tx.rows(NamedSource, "source_list") if row.pipeline == placed.pipeline.name]
            if other := next((row for row in rows if row.address == source.address and row.name != name), None):
                raise AlreadyWatched(other.name)
            options = msgspec.json.encode(definition).decode()
            tx.run("change_source", name=name, address=source.address, origin="store", options=options)
            tx.run("check_now", source=name)
            tx.run("raise_source_list_version")
        return definition

    def remove(self, name: str, *, items: ItemsFate) -> int:
        """Remove a source; return how many items it leaves, or how many are forgotten with it."""
        with self._database.transaction() as tx:
            self._database.lock(tx, "sources")
            placed = self._editable(name)
            if items == "forget" and placed.pipeline.source_keys is None:
                raise BadInput(f"items: several sources of {placed.pipeline.name} bring the same items; keep them")
            count = sum(int(tx.value("count_items_of_source", **keys)) for keys in _keys(placed.pipeline, name))
            tx.run("leave_source", name=name, origin="forgotten" if items == "forget" else "removed")
            if items == "forget":
                tx.run("drop_cursor", source=name)
            # A poller that asks it now loses the turn with the row: nothing is written by it any more.
            tx.run("drop_schedule", source=name)
            tx.run("resume", part=f"source:{name}")
            tx.run("raise_source_list_version")
        if items == "forget":
            self.forget()
        return count

    def forget(self) -> int:
        """Remove the items of sources that are forgotten; return how many went. What is worked on goes next time."""
        with self._database.reading() as tx:
            forgotten = tx.rows(ForgottenSource, "forgotten_sources")
        return sum(self._forget(source) for source in forgotten)

    def _forget(self, source: ForgottenSource) -> int:
        pipeline = self._pipelines.get(source.pipeline)
        if pipeline is None:
            return 0
        count = 0
        for keys in _keys(pipeline, source.name):
            for _ in range(BATCHES_MAX):
                with self._database.transaction() as tx:
                    leaving = tx.rows(Leaving, "items_of_source", **keys, limit=BATCH)
                    count += len(burials.bury(tx, self._pipelines, leaving, reason=REMOVED, forget_days=0))
                    # No tombstone stays: a person who adds the source again wants its items.
                    forget_tombstones(tx)
                if len(leaving) < BATCH:
                    break
        if source.since_ms > FORGOTTEN_MS and not count:
            with self._database.transaction() as tx:
                tx.run("drop_source", name=source.name)
        return count

    def _pipeline(self, name: str) -> Pipeline:
        open_ones = [each.name for each in self._pipelines.values() if each.source_kinds]
        if name not in open_ones:
            known = ", ".join(open_ones) or "none; turn one on in the file, such as [pipelines.feeds]"
            raise BadInput(f"pipeline: sources cannot be added to {name!r}; they can to: {known}")
        return self._pipelines[name]

    def _editable(self, name: str) -> PlacedSource:
        placed = self._list.current().get(name)
        if placed is None:
            raise BadInput(f"there is no source {name!r}; `tidings source list` shows them")
        if placed.origin == "file":
            raise BadInput(f"{name} stands in the configuration file; change it there, then `tidings reload`")
        return placed


def _from_file(placed: PlacedSource) -> str:
    return " in the configuration file" if placed.origin == "file" else ""


def _keys(pipeline: Pipeline, name: str) -> list[dict[str, str]]:
    """Return the ranges of keys that the items of a source have, one for each kind."""
    if pipeline.source_keys is None:
        return []
    first = pipeline.source_keys(name)
    beyond = first[:-1] + chr(ord(first[-1]) + 1)
    kinds = [kind for kind in pipeline.workflows if kind != "delivery"]
    return [{"pipeline": pipeline.name, "kind": kind, "first": first, "beyond": beyond} for kind in kinds]
