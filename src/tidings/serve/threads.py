"""Whole threads in one answer: cards nested by their links, in the order their parents give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.model.contracts import Executor, Links, ThreadNode
from tidings.model.item import ref, split_ref
from tidings.serve.filters import Card
from tidings.serve.reading import Reader

NODES_MAX = 10_000


@dataclass(slots=True)
class Place:
    """One place in a thread. `raw` is None where the item has no card: withdrawn, refused or not here yet."""

    id: str
    depth: int
    raw: bytes | None
    card: Card
    children: list[Place] = field(default_factory=list)
    below: int = 0
    """How many places lie under it."""


async def read_thread(executor: Executor, links: Links, reader: Reader, root_id: str) -> Place | None:
    """Return the root with everything below it, or None where the root has no card."""
    relation = reader.collection.relation
    assert relation is not None
    root = ref(reader.collection.kind, root_id)
    nodes = await executor.read(links.thread, reader.pipeline, relation, root, limit=NODES_MAX)
    ids = list(dict.fromkeys([root_id, *(split_ref(node.ref)[1] for node in nodes)]))
    entries = await reader.many(ids)
    if root_id not in entries:
        return None
    return nest(root, nodes, {card_id: entry.value for card_id, entry in entries.items()})


def nest(root: str, nodes: Sequence[ThreadNode], cards: Mapping[str, bytes]) -> Place:
    """Build the tree; siblings are sorted by position, the ones without a position behind the others."""
    places: dict[str, Place] = {root: _place(root, 0, cards)}
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


def _place(name: str, depth: int, cards: Mapping[str, bytes]) -> Place:
    card_id = split_ref(name)[1]
    raw = cards.get(card_id)
    card: Any = msgspec.json.decode(raw) if raw is not None else {}
    return Place(card_id, depth, raw, card)


def _number(card_id: str) -> tuple[int, str]:
    return (int(card_id), "") if card_id.isascii() and card_id.isdigit() else (0, card_id)


def encode_thread(root: Place) -> bytes:
    """Encode a tree of any depth, each card with its `children`, without recursion."""
    pieces: list[bytes] = []
    waiting: list[Place | bytes] = [root]
    while waiting:
        each = waiting.pop()
        if isinstance(each, bytes):
            pieces.append(each)
            continue
        pieces.append(_opened(each))
        waiting.append(b"]}")
        for index, child in enumerate(reversed(each.children)):
            waiting += [b",", child] if index else [child]
    return b"".join(pieces)


def _opened(place: Place) -> bytes:
    raw = place.raw if place.raw is not None else msgspec.json.encode({"id": place.id, "missing": True})
    head = raw.rstrip()[:-1]
    return head + (b'"children":[' if head.endswith(b"{") else b',"children":[')
