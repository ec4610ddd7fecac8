"""Cards know nothing of their announcements; readers see both: deliveries are joined to the cards they tell of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tidings.model.contracts import Shelf, ShelfEntry
from tidings.model.pipeline import Pipeline

DELIVERIES = "deliveries"
DELIVERIES_MAX = 5_000


class _Delivery(msgspec.Struct):
    channel: str
    parent: str
    sent_at: str | None = None
    message_id: str | None = None


class AnnouncedShelf:
    """The shelf, with `announced: [{channel, sent_at, message_id}]` on the cards of kinds that are announced."""

    def __init__(self, shelf: Shelf, pipelines: Mapping[str, Pipeline]) -> None:
        self._shelf = shelf
        self._kinds = {
            name: {f"{c.singular}:": c.kind for c in pipeline.collections if c.kind in pipeline.announce}
            for name, pipeline in pipelines.items()
        }
        self._known: dict[str, tuple[int, dict[str, bytes]]] = {}
        self.count = shelf.count
        self.version = shelf.version
        self.listed = shelf.listed

    def get(self, pipeline: str, key: str) -> ShelfEntry | None:
        """Return one entry."""
        entry = self._shelf.get(pipeline, key)
        return self._join(pipeline, [entry])[0] if entry is not None else None

    def get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        """Return the entries that exist."""
        entries = self._shelf.get_many(pipeline, keys)
        return dict(zip(entries, self._join(pipeline, list(entries.values())), strict=True))

    def newest(
        self, pipeline: str, collection: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[ShelfEntry]:
        """List a collection from the highest sort down, behind `after` (sort, key)."""
        return self._join(pipeline, self._shelf.newest(pipeline, collection, limit=limit, after=after))

    def _join(self, pipeline: str, entries: list[ShelfEntry]) -> list[ShelfEntry]:
        kinds = self._kinds.get(pipeline)
        if not kinds or not entries or not any(entries[0].key.startswith(prefix) for prefix in kinds):
            return entries
        announced = self._announcements(pipeline)
        return [_joined(entry, kinds, announced) for entry in entries]

    def _announcements(self, pipeline: str) -> dict[str, bytes]:
        """Return what was announced, encoded, by the ref of the item; read again when the shelf has changed."""
        version = self._shelf.version(pipeline)
        cached = self._known.get(pipeline)
        if cached is not None and cached[0] == version:
            return cached[1]
        found: dict[str, list[dict[str, str | None]]] = {}
        for entry in self._shelf.newest(pipeline, DELIVERIES, limit=DELIVERIES_MAX):
            sent = msgspec.json.decode(entry.value, type=_Delivery)
            found.setdefault(sent.parent, []).append(
                {"channel": sent.channel, "sent_at": sent.sent_at, "message_id": sent.message_id}
            )
        encoded = {parent: msgspec.json.encode(each) for parent, each in found.items()}
        self._known[pipeline] = (version, encoded)
        return encoded


def _joined(entry: ShelfEntry, kinds: Mapping[str, str], announced: Mapping[str, bytes]) -> ShelfEntry:
    prefix = entry.key[: entry.key.index(":") + 1]
    ref = f"{kinds.get(prefix, '')}:{entry.key.removeprefix(prefix)}"
    value = b'%s,"announced":%s}' % (entry.value[:-1], announced.get(ref, b"[]"))
    return ShelfEntry(entry.key, value, entry.version, entry.revision, entry.sort, entry.written_at, entry.item)
