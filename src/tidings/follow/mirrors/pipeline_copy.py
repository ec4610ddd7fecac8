"""One pipeline's part of a mirror, in memory: what the target holds, what waits to be written, how far it is safe."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from tidings.follow.mirrors.catalog import CardNote, Catalog, digest
from tidings.follow.mirrors.names import MirroredCollection, MirroredPipeline
from tidings.model.changes import Change

INDEX = "index:"
"""What the shelf key of an id index begins with."""
MOVED_MS = 3_600_000
"""How often a position is written that moved past changes of no concern to the mirror."""


class IdList(msgspec.Struct):
    """An id index as it stands on the shelf."""

    ids: list[str]


@dataclass(slots=True)
class WaitingCard:
    """A card that is not written yet: its latest state, since when it waits, and which batch brought it."""

    collection: MirroredCollection
    id: str
    key: str
    """Its name in the target."""
    change: Change
    since: int
    batch: int

    @property
    def value(self) -> bytes:
        """What is to be written."""
        assert self.change.value is not None
        return self.change.value


class PipelineCopy:
    """What a mirror knows of one pipeline. Changes are taken in at once; writing them is the mirror's business."""

    def __init__(
        self,
        plan: MirroredPipeline,
        catalog: Catalog,
        tag: str | None,
        key_of: Callable[[MirroredCollection, str], str],
        *,
        newest: int,
        now: int,
    ) -> None:
        self.plan, self.catalog, self.tag = plan, catalog, tag
        self.lacks_a_collection = bool(plan.collections.keys() - catalog.cards.keys())
        """A collection was chosen since: the stream must be followed from nothing to find its cards."""
        catalog.cards = {each: catalog.cards.get(each, {}) for each in plan.collections}
        # A process that died may have written an id index after its last catalog: the next one is written anyway.
        catalog.index_digests = {}
        self.position = catalog.position
        """Where the stream was followed to; the catalog's position lags behind while cards wait."""
        self.waiting: dict[str, WaitingCard] = {}
        """By key in the target."""
        self.removable: set[str] = set()
        """Doomed keys that the catalog in the target no longer lists."""
        self.changed_at = now if catalog.position is not None else None
        """When the stream last showed something; None while it has shown nothing from its beginning on."""
        self._doomed, self._unconfirmed = set(catalog.doomed), set(catalog.unconfirmed)
        self._own: set[str] = set()
        """What this process wrote."""
        self._key_of, self._newest = key_of, newest
        self._batches: deque[tuple[int, str | None]] = deque()
        self._batch = 0
        # What a process that died had written after its last catalog is known to nobody, unless all keys were listed.
        self._goes_on = catalog.position is not None
        self._dirty_since = 0 if self._doomed or self._unconfirmed else None

    def take(self, changes: Sequence[Change], position: str | None, now: int) -> None:
        """Take in what the stream says; a card that is written as it is now need not be written again."""
        self._batch += 1
        self._batches.append((self._batch, position))
        self.position = position
        if changes:
            self.changed_at = now
        for change in changes:
            if change.key.startswith(INDEX) and not change.collection:
                self._take_ids(change, now)
            elif (named := self.plan.collection_of(change.key)) is not None:
                self._take_card(*named, change, now)
        self._keep_newest(now)

    def _take_ids(self, change: Change, now: int) -> None:
        name = change.key.removeprefix(INDEX)
        collection = self.plan.collections.get(name)
        if collection is None or not collection.has_ids:
            return
        ids = msgspec.json.decode(change.value, type=IdList).ids if change.value is not None else []
        if self.catalog.ids.get(name) != ids:
            self.catalog.ids[name] = ids
            self._touch(now)

    def _take_card(self, collection: MirroredCollection, card_id: str, change: Change, now: int) -> None:
        key = self._key_of(collection, card_id)
        note = self.catalog.cards[collection.name].get(card_id)
        waits = self.waiting.pop(key, None)
        if change.value is None:
            if note is not None or waits is not None or self._goes_on:
                self._withdraw(collection, card_id, now)
        elif note is None or not self._is_written(key, note, change):
            # Counted from the first change that is not written. A card that changes every minute would otherwise never
            # be.
            since = min(now, change.written_at, waits.since if waits is not None else now)
            self.waiting[key] = WaitingCard(collection, card_id, key, change, since, self._batch)
        else:
            self._unconfirmed.discard(key)

    def _is_written(self, key: str, note: CardNote, change: Change) -> bool:
        """Tell whether a card stands in the target as it is now.

        Of another version, only what this process wrote is certain: one that died may have written a state in between
        after its last catalog, and the card be back at what the catalog says.
        """
        is_same = note.sort == change.sort and note.digest == digest(change.value or b"")
        return is_same and (note.version == change.version or key in self._own)

    def _withdraw(self, collection: MirroredCollection, card_id: str, now: int) -> None:
        self.catalog.cards[collection.name].pop(card_id, None)
        self._doom(self._key_of(collection, card_id), now)

    def _doom(self, key: str, now: int) -> None:
        self._unconfirmed.discard(key)
        self._own.discard(key)
        self._doomed.add(key)
        self._touch(now)

    def _touch(self, now: int) -> None:
        if self._dirty_since is None:
            self._dirty_since = now

    def _keep_newest(self, now: int) -> None:
        """Drop the oldest cards of a collection that has more than a mirror is to hold."""
        for collection in self.plan.collections.values():
            notes = self.catalog.cards[collection.name]
            waiting = {card.id: card for card in self.waiting.values() if card.collection is collection}
            if len(notes.keys() | waiting.keys()) <= self._newest:
                continue
            sorts = {each: note.sort for each, note in notes.items()}
            sorts |= {each: card.change.sort for each, card in waiting.items()}
            for _, each in sorted(((sort, each) for each, sort in sorts.items()), reverse=True)[self._newest :]:
                self.waiting.pop(self._key_of(collection, each), None)
                if each in notes or self._goes_on:
                    self._withdraw(collection, each, now)

    def due(self, now: int, card_ms: int) -> list[WaitingCard]:
        """Return the cards that have waited long enough for further changes, newest first."""
        found = [card for card in self.waiting.values() if card.since + card_ms <= now]
        return sorted(found, key=lambda card: (card.change.sort, card.id), reverse=True)

    def note_attempt(self, keys: Collection[str]) -> None:
        """Remember that keys are about to be written: until it is known how that ended, nothing is certain of them."""
        self._own.difference_update(keys)

    def note_written(self, cards: Iterable[WaitingCard], now: int) -> None:
        """Remember that cards were written."""
        for card in cards:
            change = card.change
            note = CardNote(change.sort, change.revision, change.version, change.written_at, digest(card.value))
            self.catalog.cards[card.collection.name][card.id] = note
            self.waiting.pop(card.key, None)
            self._own.add(card.key)
            self._unconfirmed.discard(card.key)
            # Withdrawn and shown again: it must not be deleted after it was written.
            self._doomed.discard(card.key)
            self.removable.discard(card.key)
            self._touch(now)

    def is_index_due(self, now: int, index_ms: int) -> bool:
        """Tell whether the id index and the catalog should be written.

        While more cards wait it is put off, for as long as it may be put off: one write then lists them all.
        """
        since = now - self.catalog.indexed_at
        if self._dirty_since is None:
            return since >= max(index_ms, MOVED_MS) and self.safe_position() != self.catalog.position
        return since >= index_ms and (not self.waiting or now - self._dirty_since >= index_ms)

    def safe_position(self) -> str | None:
        """Return the position before which nothing waits any more: from there a successor misses nothing."""
        position = self.catalog.position
        for number, behind in self._batches:
            if number < self._oldest_batch():
                position = behind
        return position

    def _oldest_batch(self) -> int:
        return min((card.batch for card in self.waiting.values()), default=self._batch + 1)

    def next_catalog(self, now: int) -> Catalog:
        """Return the catalog as it is to be written now."""
        return msgspec.structs.replace(
            self.catalog,
            position=self.safe_position(),
            # At least the time: a mirror that was emptied begins at 0, and readers that saw a higher number would
            # notice nothing.
            sequence=max(self.catalog.sequence + 1, now),
            indexed_at=now,
            doomed=sorted(self._doomed),
            unconfirmed=sorted(self._unconfirmed),
        )

    def note_catalog(self, catalog: Catalog, tag: str | None) -> None:
        """Remember that a catalog was written: what it no longer lists may go."""
        while self._batches and self._batches[0][0] < self._oldest_batch():
            self._batches.popleft()
        self.catalog, self.tag = catalog, tag
        self.removable = set(self._doomed)
        self._dirty_since = catalog.indexed_at if self._unconfirmed else None

    def note_removed(self, keys: Collection[str]) -> None:
        """Remember that doomed keys are gone."""
        self.removable.difference_update(keys)
        self._doomed.difference_update(keys)

    def withdraw_unconfirmed(self, now: int) -> None:
        """Withdraw what the stream, followed from nothing, has not shown again. One shown later is written again."""
        # What waits was shown again and is only not written yet.
        gone = self._unconfirmed - self.waiting.keys()
        for name, each in list(self.catalog.names()):
            if self._key_of(self.plan.collections[name], each) in gone:
                self.catalog.cards[name].pop(each)
        for key in gone:
            self._doom(key, now)

    def start_over(self, stored: Iterable[str], now: int) -> None:
        """Forget the position. What is `stored` stays until the stream has shown what there still is."""
        self._unconfirmed = set(stored) | self._unconfirmed
        self.waiting.clear()
        self._batches.clear()
        self.position = self.catalog.position = None
        self._goes_on, self.changed_at = False, None
        if self._unconfirmed:
            self._touch(now)

    def distrust(self, keys: Collection[str]) -> None:
        """Forget that cards were written: what stands in the target is something else, or nothing."""
        for name, each in list(self.catalog.names()):
            if self._key_of(self.plan.collections[name], each) in keys:
                self.catalog.cards[name].pop(each)
