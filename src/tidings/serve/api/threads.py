"""Whole threads in one answer: cards nested by their links, in the order their parents give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from tidings.model.contracts import Executor, Links, ShelfEntry, ThreadNode
from tidings.model.item import ref, split_ref
from tidings.model.publication import Collection
from tidings.serve.api.filters import Card, Predicate
from tidings.serve.api.listings import ListedCard, ListPage, Reader
from tidings.serve.http.wire import milliseconds

NODES_MAX = 10_000
PARENT, KIDS = "parent", "kids"
"""How threaded cards name what they belong to and what belongs to them, where their type has these fields.

A source may leave a neighbor out, or name a wrong one; the links know better, and are what readers get.
"""


def front_of(collection: Collection) -> Predicate | None:
    """Return which cards stand for themselves: as the collection says; of threads, those without a parent."""
    if collection.is_front is not None or collection.relation is None:
        return collection.is_front
    return lambda card: card.get(PARENT) is None


@dataclass(slots=True)
class ThreadPlace:
    """One place in a thread. `raw` is None where the item has no card: withdrawn, refused or not here yet."""

    id: str
    depth: int
    raw: bytes | None
    card: Card
    children: list[ThreadPlace] = field(default_factory=list)
    below: int = 0
    """How many places lie under it."""
    number: int = 0
    """Grows with the arrival of items; 0 where that is not known."""
    at: int | None = None
    """The time it tells itself, in milliseconds."""


async def read_thread(executor: Executor, links: Links, reader: Reader, root_id: str) -> ThreadPlace | None:
    """Return the root with everything below it, or None where the root has no card."""
    relation = reader.collection.relation
    assert relation is not None
    root = ref(reader.collection.kind, root_id)
    nodes, above = await executor.read(_thread_and_above, links, reader.pipeline, relation, root)
    ids = list(dict.fromkeys([root_id, *(split_ref(node.ref)[1] for node in nodes)]))
    entries = await reader.many(ids)
    if root_id not in entries:
        return None
    thread = nest(root, nodes, {card_id: entry.value for card_id, entry in entries.items()})
    for place in places_of(thread):
        _date(place, entries.get(place.id), reader.collection)
    _join_all(thread, above, reader)
    if len(nodes) > NODES_MAX:
        _mark_cuts(thread)
    return thread


def places_of(root: ThreadPlace) -> list[ThreadPlace]:
    """List a place and everything below it, parents first."""
    listed = [root]
    for place in listed:
        listed += place.children
    return listed


def _date(place: ThreadPlace, entry: ShelfEntry | None, collection: Collection) -> None:
    """Note when a place's item arrived, and the time it tells itself."""
    if entry is not None:
        place.number = entry.item or 0
        place.at = milliseconds(place.card.get(collection.time_field)) or entry.sort or None


def _mark_cuts(root: ThreadPlace) -> None:
    """Mark the root, and every place of which kids were left out: their own threads hold the rest."""
    waiting = [root]
    while waiting:
        place = waiting.pop()
        if place is root or len(place.card.get(KIDS) or ()) > len(place.children):
            change_card(place, {"truncated": True})
        waiting += place.children


async def read_card(executor: Executor, links: Links, reader: Reader, card_id: str) -> bytes | None:
    """Return one card, encoded, with its neighbors as the links have them; None where there is none."""
    entry = await reader.recent(card_id)
    relation = reader.collection.relation
    if entry is None or relation is None:
        return None if entry is None else entry.value
    name = ref(reader.collection.kind, card_id)
    above, below = await executor.read(_above_and_below, links, reader.pipeline, relation, name)
    place = ThreadPlace(card_id, 0, entry.value, msgspec.json.decode(entry.value))
    place.children = [ThreadPlace(split_ref(each)[1], 1, None, {}) for each in below]
    _join(place, above, reader.collection.card.__struct_fields__)
    return place.raw


async def join_listing(executor: Executor, links: Links, reader: Reader, listing: ListPage) -> ListPage:
    """Return a page of a list whose cards name the kids that their threads have."""
    relation, fields = reader.collection.relation, reader.collection.card.__struct_fields__
    if relation is None or KIDS not in fields:
        return listing
    kind = reader.collection.kind
    names = [ref(kind, reader.id_of(each.entry.key)) for each in listing.shown]
    below = await executor.read(links.children_of_each, reader.pipeline, relation, names)
    shown = [
        _with_kids(each, below[name], fields) if name in below else each
        for name, each in zip(names, listing.shown, strict=True)
    ]
    return replace(listing, shown=shown)


def _with_kids(listed: ListedCard, below: Sequence[str], fields: Sequence[str]) -> ListedCard:
    place = ThreadPlace("", 0, listed.entry.value, listed.card)
    place.children = [ThreadPlace(split_ref(each)[1], 1, None, {}) for each in below]
    _join(place, None, fields)
    if place.raw is None or place.raw is listed.entry.value:
        return listed
    return ListedCard(replace(listed.entry, value=place.raw), place.card)


def _thread_and_above(links: Links, pipeline: str, relation: str, root: str) -> tuple[list[ThreadNode], str | None]:
    parents = links.parents(pipeline, relation, root)
    return links.thread(pipeline, relation, root, limit=NODES_MAX), split_ref(parents[0])[1] if parents else None


def _above_and_below(links: Links, pipeline: str, relation: str, name: str) -> tuple[str | None, list[str]]:
    parents = links.parents(pipeline, relation, name)
    below = links.children(pipeline, relation, name, limit=NODES_MAX)
    return split_ref(parents[0])[1] if parents else None, below


def _join_all(root: ThreadPlace, above: str | None, reader: Reader) -> None:
    fields = reader.collection.card.__struct_fields__
    waiting = [(root, above)]
    while waiting:
        place, parent = waiting.pop()
        _join(place, parent, fields)
        waiting += [(child, place.id) for child in place.children]


def _join(place: ThreadPlace, parent: str | None, fields: Sequence[str]) -> None:
    """Correct the parent a card names and add the kids it leaves out."""
    if place.raw is None:
        return
    card, own = place.card, place.card.get("id")
    changes: dict[str, Any] = {}
    if parent is not None and card.get(PARENT) not in (None, _written(parent, own)):
        changes[PARENT] = _written(parent, own)
    if KIDS in fields and place.children:
        stated = card.get(KIDS) or []
        listed = set(stated)
        if more := [kid for child in place.children if (kid := _written(child.id, own)) not in listed]:
            changes[KIDS] = [*stated, *more]
    if changes:
        change_card(place, changes)


def _written(card_id: str, like: Any) -> int | str:
    """Write an id as a card of the same collection writes its own: as a number or as text."""
    return int(card_id) if isinstance(like, int) and card_id.isascii() and card_id.isdigit() else card_id


def change_card(place: ThreadPlace, changes: Mapping[str, Any]) -> None:
    """Change what a place tells, in this answer."""
    place.card = {**place.card, **changes}
    place.raw = msgspec.json.encode(place.card)


def nest(root: str, nodes: Sequence[ThreadNode], cards: Mapping[str, bytes]) -> ThreadPlace:
    """Build the tree; siblings are sorted by position, the ones without a position behind the others."""
    places: dict[str, ThreadPlace] = {root: _place(root, 0, cards)}
    positions: dict[str, tuple[bool, int]] = {}
    for node in nodes:
        if node.ref in places or node.parent not in places:
            continue
        places[node.ref] = _place(node.ref, places[node.parent].depth + 1, cards)
        positions[node.ref] = (node.position is None, node.position or 0)
        places[node.parent].children.append(places[node.ref])
    kind = split_ref(root)[0]
    for place in reversed(places.values()):
        place.children.sort(key=lambda child: (positions[ref(kind, child.id)], _number(child.id)))
        place.below = sum(1 + child.below for child in place.children)
    return places[root]


def _place(name: str, depth: int, cards: Mapping[str, bytes]) -> ThreadPlace:
    card_id = split_ref(name)[1]
    raw = cards.get(card_id)
    card: Any = msgspec.json.decode(raw) if raw is not None else {}
    return ThreadPlace(card_id, depth, raw, card)


def _number(card_id: str) -> tuple[int, str]:
    return (int(card_id), "") if card_id.isascii() and card_id.isdigit() else (0, card_id)


def encode_thread(root: ThreadPlace) -> bytes:
    """Encode a tree of any depth, each card with its `children`, without recursion."""
    pieces: list[bytes] = []
    waiting: list[ThreadPlace | bytes] = [root]
    while waiting:
        each = waiting.pop()
        if isinstance(each, bytes):
            pieces.append(each)
            continue
        pieces.append(_opened(each, root.card.get("id")))
        waiting.append(b"]}")
        for index, child in enumerate(reversed(each.children)):
            waiting += [b",", child] if index else [child]
    return b"".join(pieces)


def _opened(place: ThreadPlace, like: Any) -> bytes:
    raw = place.raw
    if raw is None:
        raw = msgspec.json.encode({"id": _written(place.id, like), "missing": True})
    head = raw.rstrip()[:-1]
    return head + (b'"children":[' if head.endswith(b"{") else b',"children":[')
