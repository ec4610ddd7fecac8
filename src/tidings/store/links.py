"""Relations between items: what each item states, and the threads that follow from it."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.model.contracts import ThreadNode
from tidings.model.errors import BadInput
from tidings.model.item import TOP, Link
from tidings.store.database import Database, Row, Tx

BY_TOP, BY_PARENT, BY_CHILD = -1, 0, 1
"""Who stated a link: the lower number outweighs the higher."""


def replace_links(tx: Tx, stated: Sequence[tuple[str, str, tuple[Link, ...] | None, bool]]) -> None:
    """Replace what items state; rows are (pipeline, ref, links, whether it may have stated something before)."""
    before = [(pipeline, name) for pipeline, name, _, had in stated if had]
    if before:
        tx.many("unsay_as_child", before)
        tx.many("unsay_as_parent", before)
    if rows := [row for pipeline, name, links, _ in stated for row in link_rows(pipeline, name, links or ())]:
        tx.many("insert_link", rows)


def link_rows(pipeline: str, name: str, links: Sequence[Link]) -> list[Row]:
    """Return what an item states, each link once, as rows; it may state links of its own only."""
    rows = [(pipeline, link.relation, link.child, _said_by(name, link), link.parent, link.position) for link in links]
    return rows if len(rows) < 2 else list({row[:5]: row for row in rows}.values())


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
            rows = tx.all("thread", pipeline=pipeline, relation=relation, root=root, limit=limit)
        nodes, seen = [ThreadNode(root, None, None, 0)], {root}
        for name, parent, position, depth in rows:
            if name not in seen:
                seen.add(name)
                nodes.append(ThreadNode(name, parent, position, depth))
        return nodes

    def parents(self, pipeline: str, relation: str, child: str) -> list[str]:
        """Return the effective parent (first) and the other stated ones."""
        with self._database.reading() as tx:
            rows = tx.all("parents", pipeline=pipeline, relation=relation, child=child)
        named = list(dict.fromkeys(row[0] for row in rows))
        return [] if TOP in named else named

    def children(self, pipeline: str, relation: str, parent: str, limit: int = 1000) -> list[str]:
        """Return refs in order."""
        with self._database.reading() as tx:
            rows = tx.all("children", pipeline=pipeline, relation=relation, parent=parent, limit=limit)
        return [row[0] for row in rows]

    def relatives(self, pipeline: str, name: str) -> list[tuple[str, str, str]]:
        """Return every (relation, child, parent) an item takes part in."""
        with self._database.reading() as tx:
            return [(r, c, p) for r, c, p in tx.all("relatives", pipeline=pipeline, ref=name)]
