"""Relations between items: what each item states, and the threads that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidings.model.contracts import ThreadNode
from tidings.model.errors import BadInput
from tidings.model.item import TOP, Link
from tidings.store.db.database import Database, Tx

BY_TOP, BY_PARENT, BY_CHILD = -1, 0, 1
"""Which of the two items stated a link: the lower number outweighs the higher."""


class LinkRow(NamedTuple):
    """A row of `insert_links`."""

    pipeline: str
    relation: str
    child: str
    said_by: int
    parent: str
    position: int | None


class ThreadRow(NamedTuple):
    """One place in a thread."""

    ref: str
    parent: str
    position: int | None
    depth: int


class ChildRow(NamedTuple):
    """A child and its place among its siblings."""

    child: str
    position: int | None


class ParentRow(NamedTuple):
    """A stated parent."""

    parent: str


class Relative(NamedTuple):
    """A relation that an item takes part in."""

    relation: str
    child: str
    parent: str


def add_links(tx: Tx, stated: Sequence[tuple[str, str, tuple[Link, ...]]]) -> None:
    """Write what new items state; rows are (pipeline, ref, links)."""
    tx.put("insert_links", [row for pipeline, name, links in stated for row in _rows(pipeline, name, links)])


def replace_links(tx: Tx, stated: Sequence[tuple[str, str, tuple[Link, ...] | None, bool]]) -> None:
    """Replace what items state; rows are (pipeline, ref, links, whether it may have stated something before)."""
    drop_links(tx, [(pipeline, name) for pipeline, name, _, had in stated if had])
    tx.put("put_links", [row for pipeline, name, links, _ in stated for row in _rows(pipeline, name, links or ())])


def drop_links(tx: Tx, names: Sequence[tuple[str, str]]) -> None:
    """Forget what items, by pipeline and ref, have stated."""
    tx.put("drop_links_of_child", names)
    tx.put("drop_links_of_parent", names)


def _rows(pipeline: str, name: str, links: Sequence[Link]) -> list[LinkRow]:
    """Return what an item states, each link once; it may state links of its own only."""
    rows = [
        LinkRow(pipeline, link.relation, link.child, _said_by(name, link), link.parent, link.position) for link in links
    ]
    return rows if len(rows) < 2 else list({(row.relation, row.child, row.parent): row for row in rows}.values())


def _said_by(name: str, link: Link) -> int:
    if link.child == link.parent:
        raise BadInput(f"{name} cannot be its own parent")
    if link.parent == name:
        return BY_PARENT
    if link.child == name:
        return BY_CHILD if link.parent != TOP else BY_TOP
    raise BadInput(f"{name} may only state links of its own, not {link.child} to {link.parent}")


class LinkStore:
    """Reads relations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def thread(self, pipeline: str, relation: str, root: str, limit: int = 10_000) -> list[ThreadNode]:
        """Return everything below `root`, root first, parents before children, siblings in order."""
        with self._database.reading() as tx:
            rows = tx.rows(ThreadRow, "thread", pipeline=pipeline, relation=relation, root=root, limit=limit)
        nodes, seen = [ThreadNode(root, None, None, 0)], {root}
        for row in rows:
            if row.ref not in seen:
                seen.add(row.ref)
                nodes.append(ThreadNode(row.ref, row.parent, row.position, row.depth))
        return nodes

    def parents(self, pipeline: str, relation: str, child: str) -> list[str]:
        """Return the effective parent (first) and the other stated ones."""
        with self._database.reading() as tx:
            rows = tx.rows(ParentRow, "parents", pipeline=pipeline, relation=relation, child=child)
        parents = list(dict.fromkeys(row.parent for row in rows))
        return [] if TOP in parents else parents

    def children(self, pipeline: str, relation: str, parent: str, limit: int = 1000) -> list[str]:
        """Return refs in order."""
        with self._database.reading() as tx:
            rows = tx.rows(ChildRow, "children", pipeline=pipeline, relation=relation, parent=parent, limit=limit)
        return [row.child for row in rows]

    def relatives(self, pipeline: str, name: str) -> list[Relative]:
        """Return every relation an item takes part in."""
        with self._database.reading() as tx:
            return tx.rows(Relative, "relatives", pipeline=pipeline, ref=name)
