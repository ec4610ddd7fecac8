"""What a server asks besides cards, answered from the cards alone: neighbors in a thread, and the newest for feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tidings.model.clock import read_time
from tidings.model.contracts import Found, Hit, SearchOrder, Shelf, ShelfEntry, ThreadNode
from tidings.model.errors import BadInput
from tidings.model.item import ref, split_ref
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection
from tidings.model.query_tree import AllOf, Part

PARENT, KIDS = "parent", "kids"


class CardLinks:
    """Relations as threaded cards state them."""

    def __init__(self, shelf: Shelf, pipelines: Mapping[str, Pipeline]) -> None:
        self._shelf, self._pipelines = shelf, pipelines

    def thread(self, pipeline: str, relation: str, root: str, limit: int = 10_000) -> list[ThreadNode]:
        """Return everything below `root` that is mirrored, root first, parents before children."""
        nodes = [ThreadNode(root, None, None, 0)]
        seen = {root}
        # The list grows while it is walked: parents come before their children, level by level.
        for node in nodes:
            for place, child in enumerate(self.children(pipeline, relation, node.ref)):
                if child not in seen and len(nodes) < limit:
                    seen.add(child)
                    nodes.append(ThreadNode(child, node.ref, place, node.depth + 1))
        return nodes

    def parents(self, pipeline: str, relation: str, child: str) -> list[str]:
        """Return the parent that a card names."""
        parent = self._card(pipeline, relation, child).get(PARENT)
        return [ref(split_ref(child)[0], str(parent))] if parent is not None else []

    def children(self, pipeline: str, relation: str, parent: str, limit: int = 1000) -> list[str]:
        """Return the children that a card names, in its order."""
        kids = self._card(pipeline, relation, parent).get(KIDS) or []
        return [ref(split_ref(parent)[0], str(kid)) for kid in kids[:limit]]

    def children_of_each(
        self, pipeline: str, relation: str, parents: Sequence[str], limit: int = 100_000
    ) -> Mapping[str, Sequence[str]]:
        """Return nothing: a mirror knows no more of them than their cards name."""
        del pipeline, relation, parents, limit
        return {}

    def _card(self, pipeline: str, relation: str, name: str) -> dict[str, Any]:
        kind, card_id = split_ref(name)
        for collection in self._pipelines[pipeline].collections:
            if collection.kind == kind and collection.relation == relation:
                entry = self._shelf.get(pipeline, f"{collection.singular}:{card_id}")
                if entry is not None:
                    card: dict[str, Any] = msgspec.json.decode(entry.value)
                    return card
        return {}


class NewestCards:
    """The search contract where there is no index: the newest cards, for feeds."""

    def __init__(self, shelf: Shelf, pipelines: Mapping[str, Pipeline]) -> None:
        self._shelf, self._pipelines = shelf, pipelines

    def search(
        self,
        root: Part,
        *,
        pipeline: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        order: SearchOrder = "newest",
        with_facets: bool = False,  # noqa: ARG002  # the contract's form; feeds ask for none
        explain: bool = False,  # noqa: ARG002
    ) -> Found:
        """Return the newest cards; whatever asks for more than that is refused."""
        if root != AllOf() or cursor is not None or order != "newest":
            raise BadInput("a mirror has no search; leave q out, or ask the server that has the database")
        hits = [
            hit
            for name, declared in self._pipelines.items()
            if pipeline in (None, name)
            for collection in declared.collections
            for hit in self._hits(name, collection, limit)
        ]
        hits.sort(key=lambda hit: (hit.time_ms, hit.key), reverse=True)
        return Found(hits[:limit], len(hits))

    def suggest(self, text: str, *, pipeline: str | None = None, limit: int = 10) -> list[str]:  # noqa: ARG002
        """Suggest nothing: there are no words to look in."""
        return []

    def similar(self, pipeline: str, kind: str, key: str, *, limit: int = 10) -> list[Hit]:  # noqa: ARG002
        """Find nothing alike: there are no words to compare."""
        return []

    def _hits(self, pipeline: str, collection: Collection, limit: int) -> list[Hit]:
        entries = self._shelf.newest(pipeline, collection.name, limit=limit)
        return [_hit(pipeline, collection, entry) for entry in entries]


def _hit(pipeline: str, collection: Collection, entry: ShelfEntry) -> Hit:
    card = msgspec.json.decode(entry.value)
    kind = card.get("type")
    return Hit(
        pipeline=pipeline,
        kind=collection.kind,
        key=entry.key.partition(":")[2],
        title=str(card.get(collection.title_field) or ""),
        snippet=str(card.get(collection.summary_field) or ""),
        rank=0.0,
        author=card.get("author") or card.get("by"),
        type=kind if isinstance(kind, str) else collection.kind,
        score=None,
        time_ms=read_time(card.get(collection.time_field)) or entry.sort,
        url=card.get(collection.link_field),
        attributes={},
        shelf_key=entry.key,
    )
