"""Cards: what readers see of items, written in the transaction of a merge or a settle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from tidings.model.clock import day_of
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Shown
from tidings.store.db.database import Tx
from tidings.store.limits import EVER
from tidings.watch.logs import event

_BY_PIPELINE = attrgetter("pipeline")


class Card(NamedTuple):
    """What an item shows; None withdraws it."""

    item: int
    revision: int
    shown: Shown | None


class NewCard(NamedTuple):
    """What readers see of an item before anything of it was accepted."""

    item: int
    shown: Shown


class OtherCard(NamedTuple):
    """A card under a key that an item wants for itself, and whether the item it belongs to exists."""

    id: int
    holder: int
    is_alive: int


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


def put_new_cards(tx: Tx, pipeline: Pipeline, cards: Sequence[NewCard]) -> int:
    """Write the cards of items of which nothing was accepted yet; return the writes, which the caller counts.

    A key has one card. One that a lost item has left behind is withdrawn; while a living item has it, the newcomer is
    not shown: whatever stands there, the merge goes on.
    """
    others = tx.returning(OtherCard, "cards_of_others", [(c.item, pipeline.name, c.shown.key) for c in cards])
    drop_shown(tx, [other.holder for other in others if not other.is_alive])
    firsts = {card.shown.key: card.item for card in reversed(cards)}
    taken = {other.id for other in others if other.is_alive} | {card.item for card in cards} - set(firsts.values())
    for card in cards:
        if card.item in taken:
            event("no first card", pipeline=pipeline.name, item=card.item, error=f"{card.shown.key} is another item's")
    cards = [card for card in cards if card.item not in taken]
    return tx.put("put_cards", _rows(tx, pipeline, [(card.item, 0, card.shown) for card in cards]))


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


def draw_versions(tx: Tx, pipeline: str, count: int = 1) -> int:
    """Draw the next versions of a pipeline's shelf; return the first. No other process draws until this one commits."""
    return int(tx.value("draw_versions", pipeline=pipeline, count=count)) - count + 1


def count_writes(tx: Tx, pipeline: str, written: int) -> None:
    """Count shelf writes per day, and since ever."""
    if written:
        for day in (day_of(tx.value("now")), EVER):
            tx.run("count_budget", name=f"shelf_writes:{pipeline}", day=day, amount=written)
