"""Read and star marks of readers, and the searches they keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidings.model.marks import SEARCHES_MAX, Mark, SavedSearch, ShelfPlace
from tidings.store.db.database import Database


class StarredItem(NamedTuple):
    """An item and when it was starred."""

    item: int
    starred_at: int


class ReadLine(NamedTuple):
    """Up to which item a pipeline counts as read."""

    pipeline: str
    upto: int


class SearchRow(NamedTuple):
    """A saved search."""

    name: str
    title: str
    query: str
    pipeline: str | None
    created_at: int


class MarkStore:
    """One row for a mark, one for all that was read before a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, reader: str, items: Sequence[int]) -> dict[int, Mark]:
        """Return the marks that exist."""
        with self._database.reading() as tx:
            rows = tx.returning(Mark, "marks_of", [(item,) for item in items], reader=reader)
        return {row.item: row for row in rows}

    def lines(self, reader: str) -> dict[str, int]:
        """Return up to which item everything of a pipeline counts as read."""
        with self._database.reading() as tx:
            return {row.pipeline: row.upto for row in tx.rows(ReadLine, "read_lines", reader=reader)}

    def mark(self, reader: str, items: Sequence[int], *, read: bool | None = None, starred: bool | None = None) -> int:
        """Mark items that are shown; None leaves a mark as it is. Return how many are shown."""
        # In one order, as all who lock these rows.
        given = [(item,) for item in sorted(set(items))]
        marked = 0
        with self._database.transaction() as tx:
            if read is not None:
                marked = tx.put("put_read_marks", given, reader=reader, is_read=int(read))
            if starred is not None:
                marked = tx.put("put_star_marks", given, reader=reader, is_starred=int(starred))
        return marked

    def read_up_to(self, reader: str, pipelines: Sequence[str], at_ms: int) -> None:
        """Mark everything of pipelines as read that was shown by a time."""
        with self._database.transaction() as tx:
            upto = tx.value("newest_shown_item", at=at_ms)
            if upto is None:
                return
            for pipeline in sorted(pipelines):
                tx.run("put_read_line", reader=reader, pipeline=pipeline, upto=upto)
                tx.run("end_kept_unread", reader=reader, pipeline=pipeline, upto=upto)
                tx.run("end_kept_starred", reader=reader, pipeline=pipeline, upto=upto)

    def starred(self, reader: str, limit: int) -> list[int]:
        """Return starred items, the latest star first."""
        with self._database.reading() as tx:
            return [row.item for row in tx.rows(StarredItem, "starred_items", reader=reader, limit=limit)]

    def places(self, items: Sequence[int]) -> dict[int, ShelfPlace]:
        """Return where the cards of items stand."""
        with self._database.reading() as tx:
            rows = tx.returning(ShelfPlace, "shelf_places", [(item,) for item in items])
        return {row.item: row for row in rows}

    def searches(self, reader: str) -> list[SavedSearch]:
        """Return a reader's saved searches, by title."""
        with self._database.reading() as tx:
            rows = tx.rows(SearchRow, "searches", reader=reader)
        return [SavedSearch(**row._asdict()) for row in rows]

    def put_search(self, reader: str, search: SavedSearch) -> bool:
        """Keep a search; False where there are too many."""
        names = {each.name for each in self.searches(reader)}
        if search.name not in names and len(names) >= SEARCHES_MAX:
            return False
        named = {"name": search.name, "title": search.title, "query": search.query, "pipeline": search.pipeline}
        with self._database.transaction() as tx:
            tx.run("put_search", reader=reader, **named)
        return True

    def delete_search(self, reader: str, name: str) -> bool:
        """Forget a search; return whether it was there."""
        with self._database.transaction() as tx:
            return tx.run("delete_search", reader=reader, name=name) > 0
