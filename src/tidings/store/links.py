"""Relations between items: what each item states, and the threads that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidings.model.contracts import ThreadNode
from tidings.model.errors import BadInput
from tidings.model.item import AWAITS, MISPLACED, PLACED, TOP, Link, ref, split_ref
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


class StatedPlace(NamedTuple):
    """One word on where a child stands."""

    relation: str
    child: str
    parent: str


class Standpoint(NamedTuple):
    """Where a child stands by all that is stated, where its card shows it, and where it says itself that it stands."""

    child: str
    parent: str | None
    placed: str | None
    own: str | None

    @property
    def is_misplaced(self) -> bool:
        """Tell whether the card names another parent than the links; what states no place has none to be wrong."""
        return self.own is not None and self.parent != TOP and (self.parent or self.own) != (self.placed or self.own)


class NamedParent(NamedTuple):
    """A child, and the kind and key of the parent it names."""

    child: str
    kind: str
    key: str


class ThreadRow(NamedTuple):
    """One place in a thread."""

    ref: str
    parent: str
    position: int | None
    depth: int


class ParentOfChild(NamedTuple):
    """A parent with one of its children."""

    parent: str
    child: str


def _by_number(link: ParentOfChild) -> tuple[int, str]:
    return len(link.child), link.child


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


def replace_links(tx: Tx, stated: Sequence[tuple[str, str, tuple[Link, ...] | None, bool]]) -> list[StatedPlace]:
    """Replace what items state; rows are (pipeline, ref, links, whether it may have stated something before).

    Return what they had stated of those below them.
    """
    dropped = drop_links(tx, [(pipeline, name) for pipeline, name, _, had in stated if had])
    tx.put("put_links", [row for pipeline, name, links, _ in stated for row in _rows(pipeline, name, links or ())])
    return dropped


def drop_links(tx: Tx, names: Sequence[tuple[str, str]]) -> list[StatedPlace]:
    """Forget what items, by pipeline and ref, have stated; return what it was of those below them."""
    # Two statements, because each is answered by an index of its own.
    tx.put("drop_links_of_child", names)
    return tx.returning(StatedPlace, "drop_links_of_parent", names)


def missing_parents(tx: Tx, pipeline: str, links: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the children, with the parents they name, whose parent is not here; pairs are (child, parent)."""
    named = [NamedParent(child, *split_ref(parent)) for child, parent in links]
    found = tx.returning(NamedParent, "missing_parents", named, pipeline=pipeline) if named else []
    return {each.child: ref(each.kind, each.key) for each in found}


def mark_misplaced(tx: Tx, pipeline: str, links: Iterable[Link], dropped: Iterable[StatedPlace]) -> int:
    """Mark the children whose cards name another parent than all that is stated now; return how many.

    To be called last in a transaction, behind the lock of its first card: of two transactions that state different
    parents of one child, the later one sees what the earlier has written. It must lock no item any more, so that the
    children are begun again by another transaction.
    """
    kept = {(link.relation, link.child, link.parent) for link in links if link.relation not in _NOTED}
    stated = [StatedPlace(*each) for each in kept if each[2] != TOP]
    doubtful = set(tx.returning(StatedPlace, "doubtful_places", stated, pipeline=pipeline)) if stated else set()
    doubtful |= {each for each in dropped if tuple(each) not in kept}
    children = sorted({(each.relation, each.child) for each in doubtful})
    found = tx.returning(Standpoint, "standpoints", children, pipeline=pipeline) if children else []
    wrong = {each.child: each.parent or each.own or "" for each in found if each.is_misplaced}
    tx.put("put_links", [LinkRow(pipeline, MISPLACED, child, BY_CHILD, wrong[child], None) for child in sorted(wrong)])
    return len(wrong)


_NOTED = frozenset({AWAITS, PLACED, MISPLACED})
"""Relations that no thread is made of."""


def _rows(pipeline: str, name: str, links: Sequence[Link]) -> list[LinkRow]:
    """Return what an item states, each link once; it may state links of its own only."""
    rows = [
        LinkRow(pipeline, link.relation, link.child, _said_by(name, link), link.parent, link.position) for link in links
    ]
    # Each link once: a statement must not write the same row twice.
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
            # An item may state several parents, or a cycle. It is shown once, where it stands highest.
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

    def children_of_each(
        self, pipeline: str, relation: str, parents: Sequence[str], limit: int = 100_000
    ) -> Mapping[str, Sequence[str]]:
        """Return the refs below each of several, the lowest first; those without any are absent."""
        given = [(name,) for name in parents]
        found: dict[str, list[str]] = {}
        with self._database.reading() as tx:
            bounds = {"pipeline": pipeline, "relation": relation, "limit": limit}
            links = tx.returning(ParentOfChild, "children_of_each", given, **bounds)
            for link in sorted(links, key=_by_number):
                found.setdefault(link.parent, []).append(link.child)
        return found

    def missing_parents(self, pipeline: str, child: str) -> list[str]:
        """Return what an item stands below and what is not here."""
        with self._database.reading() as tx:
            parents = [row.parent for row in tx.rows(ParentRow, "named_parents", pipeline=pipeline, child=child)]
            return list(missing_parents(tx, pipeline, [(child, parent) for parent in parents[:1]]).values())

    def relatives(self, pipeline: str, name: str) -> list[Relative]:
        """Return every relation an item takes part in."""
        with self._database.reading() as tx:
            return tx.rows(Relative, "relatives", pipeline=pipeline, ref=name)
