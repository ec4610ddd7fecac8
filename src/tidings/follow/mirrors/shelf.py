"""A mirror as the shelf that a server reads: the same lists and cards, with no database behind them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import TimeoutError as TooSlow
from typing import Any, Protocol, TypeVar

import msgspec

from tidings.follow.mirrors.catalog import CardNote, Catalog, readable
from tidings.follow.mirrors.names import MirroredCollection, MirroredPipeline, names_for
from tidings.follow.mirrors.pipeline_copy import INDEX
from tidings.follow.mirrors.target import Target
from tidings.model.contracts import ShelfEntry
from tidings.model.errors import StoreUnavailable, TidingsError, Transient

T = TypeVar("T")
WAIT_SECONDS = 30
RECENT_SECONDS = 0.1


class Catalogs(Protocol):
    """Where a shelf finds what it holds."""

    async def current(self, pipeline: str) -> Catalog:
        """Return the catalog of a pipeline."""
        ...


class LiveCatalogs:
    """The catalogs in a target, read again when they have changed."""

    def __init__(self, target: Target) -> None:
        self._target, self._names = target, names_for(target)
        self._known: dict[str, tuple[str | None, Catalog]] = {}
        self._asked_at: dict[str, float] = {}

    async def current(self, pipeline: str) -> Catalog:
        """Return the catalog as it stands in the target now, or stood a moment ago: a request asks several times."""
        key = self._names.catalog(pipeline)
        known, now = self._known.get(pipeline), time.monotonic()
        if known is not None and now - self._asked_at[pipeline] < RECENT_SECONDS:
            return known[1]
        tag = await self._target.tag(key)
        if known is None or known[0] != tag or tag is None:
            # The tag is the older of the two: a catalog written in between is read again the next time.
            catalog = readable(pipeline, (await self._target.get_many([key])).get(key))
            if catalog is None:
                raise Transient(
                    f"it holds no catalog of {pipeline}: nothing was mirrored yet, or the server began empty"
                )
            self._known[pipeline] = known = tag, catalog
        self._asked_at[pipeline] = now
        return known[1]


class FixedCatalog:
    """One catalog that is about to be written."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def current(self, pipeline: str) -> Catalog:
        """Return it; of other pipelines nothing is listed."""
        return self._catalog if pipeline == self._catalog.pipeline else Catalog(pipeline=pipeline)


class MirrorShelf:
    """The shelf contract over a target. Its calls are synchronous, and made off the loop that does the reading."""

    def __init__(
        self,
        target: Target,
        catalogs: Catalogs,
        pipelines: Mapping[str, MirroredPipeline],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._target, self._catalogs, self._plans, self._loop = target, catalogs, pipelines, loop
        self._names = names_for(target)

    def get(self, pipeline: str, key: str) -> ShelfEntry | None:
        """Return one entry."""
        return self.get_many(pipeline, [key]).get(key)

    def get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        """Return the entries that exist."""
        return self._wait(self._get_many(pipeline, keys))

    def newest(
        self, pipeline: str, collection: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[ShelfEntry]:
        """List a collection from the highest sort down, behind `after` (sort, key)."""
        return self._wait(self._newest(pipeline, collection, limit, after))

    def count(self, pipeline: str, collection: str) -> int:
        """Count a collection."""
        return len(self._wait(self._catalogs.current(pipeline)).cards.get(collection, {}))

    def listed(self, pipeline: str, collection: str) -> list[str]:
        """Return the keys that the catalog lists: a target may have lost one of their cards."""
        plan = self._plans[pipeline].collections.get(collection)
        notes = self._wait(self._catalogs.current(pipeline)).cards.get(collection, {}) if plan is not None else {}
        return [f"{plan.singular}:{each}" for each in notes] if plan is not None else []

    def version(self, pipeline: str) -> int:
        """Return a number that grows with every catalog written."""
        return self._wait(self._catalogs.current(pipeline)).sequence

    def _wait(self, reading: Coroutine[Any, Any, T]) -> T:
        try:
            # Handlers call the shelf from worker threads. On the loop itself this would wait for itself for ever.
            return asyncio.run_coroutine_threadsafe(reading, self._loop).result(WAIT_SECONDS)
        except (TidingsError, TooSlow) as error:
            raise StoreUnavailable(f"the mirror in {self._target.place} cannot be read: {error}") from error

    async def _get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        catalog = await self._catalogs.current(pipeline)
        entries = {key: entry for key in keys if (entry := _id_index(catalog, key)) is not None}
        wanted: dict[str, tuple[MirroredCollection, str, CardNote]] = {}
        for key in keys:
            named = self._plans[pipeline].collection_of(key)
            note = catalog.cards.get(named[0].name, {}).get(named[1]) if named is not None else None
            if named is not None and note is not None:
                wanted[key] = (*named, note)
        names = {key: self._names.card(pipeline, each, card_id) for key, (each, card_id, _) in wanted.items()}
        values = await self._target.get_many(list(names.values())) if names else {}
        return entries | {
            key: _entry(key, values[names[key]], wanted[key][2])
            for key in wanted
            if names[key] in values and _is_card(values[names[key]])
        }

    async def _newest(
        self, pipeline: str, collection: str, limit: int, after: tuple[int, str] | None
    ) -> list[ShelfEntry]:
        plan = self._plans[pipeline].collections.get(collection)
        if plan is None:
            return []
        notes = (await self._catalogs.current(pipeline)).cards.get(collection, {})
        places = sorted(((note.sort, f"{plan.singular}:{each}") for each, note in notes.items()), reverse=True)
        keys = [place[1] for place in places if after is None or place < after]
        found: list[ShelfEntry] = []
        # A card that is gone must not make a page short: to its reader a short page is the last one.
        while len(found) < limit and keys:
            part, keys = keys[: limit - len(found)], keys[limit - len(found) :]
            entries = await self._get_many(pipeline, part)
            found += [entries[key] for key in part if key in entries]
        return found


def _id_index(catalog: Catalog, key: str) -> ShelfEntry | None:
    """Return the id index as the store's shelf has it, where a key asks for one."""
    name = key.removeprefix(INDEX)
    if name == key or name not in catalog.ids:
        return None
    ids, notes = catalog.listing(name), catalog.cards.get(name, {})
    value = msgspec.json.encode({"ids": ids, "sorts": [notes[each].sort for each in ids]})
    return ShelfEntry(key, value, catalog.sequence, 0, 0, catalog.indexed_at)


def _is_card(value: bytes) -> bool:
    """Tell whether a value can be a card: one that cannot is missing, and costs its list nothing more."""
    try:
        msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return False
    return True


def _entry(key: str, value: bytes, note: CardNote) -> ShelfEntry:
    return ShelfEntry(key, value, note.version, note.revision, note.sort, note.written_at)
