"""The stream of changes, as followers and clients read it.

A version is drawn in the transaction that writes, from a row that stays locked until it commits. So a reader that has
seen a version has seen all before it, and no transaction that is still open can add one below.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tidings.model.changes import AcceptedChild, AcceptedCopy, Change, ChangePage, CursorGone
from tidings.model.item import ref, split_ref
from tidings.store.db.database import Database, Tx


class StreamEnd(NamedTuple):
    """The newest version of a pipeline, and up to which one withdrawals are forgotten."""

    version: int
    horizon: int


class ForgottenVersion(NamedTuple):
    """A withdrawal that is no longer told."""

    pipeline: str
    version: int


class NewestVersion(NamedTuple):
    """The newest version of a pipeline."""

    pipeline: str
    version: int


class NamedItem(NamedTuple):
    """An item's id and name."""

    id: int
    kind: str
    key: str


class ParentLink(NamedTuple):
    """One step up a thread."""

    child: str
    parent: str | None


class ReplyCount(NamedTuple):
    """How many stand right below an item."""

    ref: str
    replies: int


class ChangeStore:
    """Reads the stream."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def changes(self, pipeline: str, after: str | None, limit: int) -> ChangePage:
        """Return the changes behind a cursor, or from the beginning; raise CursorGone if some cannot be told."""
        with self._database.reading() as tx:
            stream = f"{tx.value('stream')}.{pipeline}"
            end = tx.row(StreamEnd, "stream_end", pipeline=pipeline) or StreamEnd(0, 0)
            seen, began = _place(after, stream, end)
            found = tx.rows(Change, "changes", pipeline=pipeline, after=seen, limit=limit)
        # Another process may have committed between the two reads.
        last = found[-1].version if len(found) == limit else max([end.version, *(each.version for each in found[-1:])])
        changes = [_whole(change) for change in found]
        return ChangePage(changes, stream, last, began, max(0, end.version - last), len(found) == limit)

    def versions(self) -> Mapping[str, int]:
        """Return the newest version of every pipeline."""
        with self._database.reading() as tx:
            return {row.pipeline: row.version for row in tx.rows(NewestVersion, "newest_versions")}

    def accepted(self, items: Sequence[int]) -> Mapping[int, AcceptedCopy]:
        """Return the accepted bodies of items."""
        with self._database.reading() as tx:
            return {row.id: row for row in tx.returning(AcceptedCopy, "accepted_copies", [(item,) for item in items])}

    def children(self, pipeline: str, relation: str, refs: Sequence[str]) -> Sequence[AcceptedChild]:
        """Return the accepted items right below items."""
        with self._database.reading() as tx:
            rows = [(name,) for name in refs]
            links = tx.returning(ParentLink, "children_of", rows, pipeline=pipeline, relation=relation)
            named = [split_ref(name) for name in dict.fromkeys(link.child for link in links)]
            found = tx.returning(NamedItem, "accepted_items", named, pipeline=pipeline) if named else []
        ids = {ref(each.kind, each.key): each.id for each in found}
        return [AcceptedChild(ids[link.child], link.child, link.parent or "") for link in links if link.child in ids]

    def reply_counts(self, pipeline: str, relation: str, refs: Sequence[str]) -> Mapping[str, int]:
        """Return how many stand right below items, as in threads; those without any are absent."""
        with self._database.reading() as tx:
            rows = [(name,) for name in refs]
            return dict(tx.returning(ReplyCount, "reply_counts", rows, pipeline=pipeline, relation=relation))

    def unnamed_parents(self, pipeline: str, relation: str, refs: Sequence[str]) -> Sequence[int]:
        """Return the accepted items right above some that do not name these themselves."""
        with self._database.reading() as tx:
            rows = [(name,) for name in refs]
            links = tx.returning(ParentLink, "unnamed_children", rows, pipeline=pipeline, relation=relation)
            named = [split_ref(name) for name in dict.fromkeys(link.parent for link in links) if name]
            found = tx.returning(NamedItem, "accepted_items", named, pipeline=pipeline) if named else []
        return [each.id for each in found]

    def ancestors(self, pipeline: str, relation: str, refs: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return everything above items in their threads, by ref."""
        parents: dict[str, list[str]] = {}
        names: Collection[str] = refs
        with self._database.reading() as tx:
            # Level by level, and no name twice: the refs of one batch share most of their ancestors, and a cycle ends
            # here.
            while above := [(name,) for name in dict.fromkeys(names) if name not in parents]:
                parents.update({name: [] for (name,) in above})
                for link in tx.returning(ParentLink, "parents_of", above, pipeline=pipeline, relation=relation):
                    if link.parent:  # neither without a parent nor at the top, which is named by an empty one
                        parents[link.child].append(link.parent)
                names = [parent for (name,) in above for parent in parents[name]]
        return {name: _above(name, parents) for name in refs}


def _above(below: str, parents: Mapping[str, Sequence[str]]) -> list[str]:
    found: dict[str, None] = {}
    names = list(parents[below])
    while names:
        name = names.pop()
        if name not in found:
            found[name] = None
            names += parents.get(name, ())
    return list(found)


class StreamPlace(NamedTuple):
    """Where a reader stands: the last version it has seen, and the newest one when it started from nothing."""

    seen: int
    began: int


def _place(after: str | None, stream: str, end: StreamEnd) -> StreamPlace:
    """Read a cursor.

    A forgotten withdrawal is missed by readers that may have the card. Those that began after it do not: at their
    beginning it no longer stood on the shelf. Without this rule nobody could start over whose first page ends before
    the newest forgotten withdrawal.
    """
    if after is None:
        return StreamPlace(0, end.version)
    numbers = after.removeprefix(f"{stream}.").split(".")
    is_read = after.startswith(f"{stream}.") and len(numbers) <= 2 and all(map(_is_version, numbers))
    seen, began = (int(numbers[0]), int(numbers[-1])) if is_read else (-1, -1)
    if not 0 <= seen <= began <= end.version or 0 < began < end.horizon:
        raise CursorGone("the stream cannot tell what happened since; start over without a cursor")
    return StreamPlace(seen, began) if seen else StreamPlace(0, end.version)


def _is_version(number: str) -> bool:
    # A cursor comes from outside, and `int` would also take "1_0", other scripts' digits and megabytes of them.
    return number.isascii() and number.isdecimal() and len(number) < 19


def _whole(change: Change) -> Change:
    return change if change.value is None else change._replace(value=bytes(change.value))


def forget_withdrawals(tx: Tx, keep_ms: int) -> int:
    """Forget old withdrawals: a follower that has not seen them by now has to start over."""
    forgotten = tx.rows(ForgottenVersion, "forget_withdrawals", keep_ms=keep_ms)
    newest: dict[str, int] = {}
    for each in forgotten:
        newest[each.pipeline] = max(each.version, newest.get(each.pipeline, 0))
    tx.put("raise_horizon", sorted(newest.items()))
    return len(forgotten)
