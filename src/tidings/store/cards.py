"""Cards: what readers see of items, and the id index, written in the transaction of a merge or a settle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from tidings.model.clock import DAY_MS, day_of
from tidings.model.item import Finding
from tidings.model.pipeline import Pipeline
from tidings.model.publication import IdIndex, Shown
from tidings.store.db.database import Tx
from tidings.store.limits import EVER
from tidings.watch.logs import event

_encode = msgspec.json.Encoder(order="deterministic").encode
_BY_PIPELINE = attrgetter("pipeline")


class Card(NamedTuple):
    """What an item shows; None withdraws it."""

    item: int
    revision: int
    shown: Shown | None


class CardRow(NamedTuple):
    """A row of `put_cards`."""

    id: int
    pipeline: str
    key: str
    collection: str
    sort: int
    value: bytes
    revision: int
    version: int


class DroppedCard(NamedTuple):
    """What was taken off the shelf."""

    id: int
    pipeline: str
    key: str
    collection: str


class Withdrawal(NamedTuple):
    """A row of `put_withdrawals`."""

    pipeline: str
    version: int
    item: int
    key: str
    collection: str


class EntryRow(NamedTuple):
    """What stands on the shelf under a key."""

    key: str
    value: bytes
    version: int
    revision: int
    sort: int
    written_at: int
    id: int


def put_cards(tx: Tx, pipeline: Pipeline, cards: Sequence[Card], *, are_new: bool = False) -> int:
    """Write or withdraw cards; of new items nothing was shown yet. Return the writes."""
    shown = [(card.item, card.revision, card.shown) for card in cards if card.shown is not None]
    if not are_new:
        # Told before the new card: a follower that knows items takes the later of two changes of one.
        renamed = [(item, each.key, revision) for item, revision, each in shown]
        _withdraw(tx, tx.returning(DroppedCard, "renamed_cards", renamed))
    rows = _rows(tx, pipeline, shown)
    if are_new:
        written = tx.put("insert_cards", rows)
    else:
        written = tx.put("put_cards", rows)
        withdrawn = [(card.item,) for card in cards if card.shown is None]
        written += _withdraw(tx, tx.returning(DroppedCard, "drop_cards", withdrawn))
    count_writes(tx, pipeline.name, written)
    return written


def _rows(tx: Tx, pipeline: Pipeline, shown: Sequence[tuple[int, int, Shown]]) -> list[CardRow]:
    """Give every card the next version of its pipeline."""
    if not shown:
        return []
    first = draw_versions(tx, pipeline.name, len(shown))
    return [
        CardRow(item, pipeline.name, each.key, each.collection, each.sort, each.value, revision, first + number)
        for number, (item, revision, each) in enumerate(shown)
    ]


def drop_shown(tx: Tx, items: Sequence[int]) -> int:
    """Withdraw whatever readers see of items."""
    return _withdraw(tx, tx.returning(DroppedCard, "drop_cards", [(item,) for item in items]))


def drop_entry(tx: Tx, pipeline: str, key: str) -> int:
    """Remove an entry of no item."""
    return _withdraw(tx, tx.rows(DroppedCard, "drop_entry", pipeline=pipeline, key=key))


def drop_expired(tx: Tx) -> int:
    """Remove the entries that have expired."""
    return _withdraw(tx, tx.rows(DroppedCard, "drop_expired_entries"))


def _withdraw(tx: Tx, dropped: Sequence[DroppedCard]) -> int:
    """Let followers know what was taken off the shelf; return how much it was."""
    # In the order of names. A draw locks its pipeline until the commit: two orders could deadlock.
    for name, group in groupby(sorted(dropped, key=_BY_PIPELINE), key=_BY_PIPELINE):
        cards = list(group)
        first = draw_versions(tx, name, len(cards))
        rows = [Withdrawal(name, first + n, card.id, card.key, card.collection) for n, card in enumerate(cards)]
        tx.put("put_withdrawals", rows)
    return len(dropped)


def put_first_cards(tx: Tx, pipeline: Pipeline, born: Sequence[tuple[int, Finding]]) -> None:
    """Show new items at once, and enter them in the id index, of which the merge is the only writer."""
    # Of two findings of one item in the same merge, the later one counts.
    cards = [(item, _first_card(pipeline, finding)) for item, finding in dict(born).items()]
    shown = [(item, 0, card) for item, card in cards if card is not None]
    written = tx.put("put_cards", _rows(tx, pipeline, shown))
    written += update_id_index(tx, pipeline, [(card.id, card.sort) for _, _, card in shown])
    count_writes(tx, pipeline.name, written)


def _first_card(pipeline: Pipeline, finding: Finding) -> Shown | None:
    presenter = pipeline.first_cards.get(finding.kind)
    workflow = pipeline.workflows.get(finding.kind)
    if presenter is None or workflow is None:
        return None
    try:
        return pipeline.show(presenter(finding.key, workflow.decode(finding.payload)))
    except Exception as error:  # noqa: BLE001  # one finding must not stop the merge; its own attempt will tell
        event("no first card", pipeline=pipeline.name, key=finding.key, error=f"{type(error).__name__}: {error}")
        return None


def update_id_index(
    tx: Tx, pipeline: Pipeline, entries: Sequence[tuple[str, int]], *, are_known_kept: bool = False
) -> int:
    """Enter ids with their sort, newest first, within number and age; return 1 if the index was written.

    Where the known are kept, an id that is in the index stays where it stands.
    """
    index = pipeline.id_index
    if index is None:
        return 0
    now: int = tx.value("now")
    held, oldest = _held_ids(tx, pipeline, index), now - index.days * DAY_MS
    merged = dict(entries) | held if are_known_kept else held | dict(entries)
    return _write_ids(tx, pipeline, index, {i: sort for i, sort in merged.items() if sort >= oldest}, now)


def prune_id_index(tx: Tx, pipeline: Pipeline) -> None:
    """Take out the ids that have no card any more; the caller holds the merge's lock, as the index's one writer."""
    index = pipeline.id_index
    if index is None:
        return
    singular, held = pipeline.collection(index.collection).singular, _held_ids(tx, pipeline, index)
    found = tx.returning(EntryRow, "shelf_entries", [(pipeline.name, f"{singular}:{each}") for each in held])
    keys = {entry.key for entry in found}
    kept = {each: sort for each, sort in held.items() if f"{singular}:{each}" in keys}
    if len(kept) < len(held):
        count_writes(tx, pipeline.name, _write_ids(tx, pipeline, index, kept, tx.value("now")))


def _held_ids(tx: Tx, pipeline: Pipeline, index: IdIndex) -> dict[str, int]:
    entry = tx.row(EntryRow, "shelf_entry", pipeline=pipeline.name, key=f"index:{index.collection}")
    held = msgspec.json.decode(entry.value) if entry else {"ids": [], "sorts": []}
    return dict(zip(held["ids"], held["sorts"], strict=True))


def _write_ids(tx: Tx, pipeline: Pipeline, index: IdIndex, ids: Mapping[str, int], now_ms: int) -> int:
    kept = sorted(((sort, each) for each, sort in ids.items()), reverse=True)[: index.newest]
    # An unchanged list is not written, though a version was drawn for it. Gaps between versions do no harm: readers ask
    # for what is greater.
    written: Any = tx.value(
        "put_entry",
        pipeline=pipeline.name,
        key=f"index:{index.collection}",
        collection="",
        sort=0,
        value=_encode({"ids": [each for _, each in kept], "sorts": [sort for sort, _ in kept]}),
        version=draw_versions(tx, pipeline.name),
        expires_at=now_ms + index.days * DAY_MS,
    )
    return int(written is not None)


def draw_versions(tx: Tx, pipeline: str, count: int = 1) -> int:
    """Draw the next versions of a pipeline's shelf; return the first. No other process draws until this one commits."""
    return int(tx.value("draw_versions", pipeline=pipeline, count=count)) - count + 1


def count_writes(tx: Tx, pipeline: str, written: int) -> None:
    """Count shelf writes per day, and since ever."""
    if written:
        for day in (day_of(tx.value("now")), EVER):
            tx.run("count_budget", name=f"shelf_writes:{pipeline}", day=day, amount=written)
