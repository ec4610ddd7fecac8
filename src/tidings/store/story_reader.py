"""Stories as readers see them."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.model.stories import MEMBERS_SHOWN_MAX, StoryMember, StoryPlace, StoryRow, StoryState
from tidings.store.db.database import Database, Tx

FAR = 2**62


class StoryReader:
    """Reads stories and who tells them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def state(self) -> StoryState:
        """Return how far the grouping is."""
        with self._database.reading() as tx:
            return read_state(tx)

    def story(self, story: int) -> StoryRow | None:
        """Return a story, while anything tells it."""
        with self._database.reading() as tx:
            return tx.row(StoryRow, "story", id=story)

    def newest(self, limit: int, *, sources: int = 0, after: tuple[int, int] | None = None) -> list[StoryRow]:
        """Return the stories that more than one item tells, newest news first, behind `after` (last_ms, id)."""
        last, story = after or (FAR, FAR)
        with self._database.reading() as tx:
            return tx.rows(StoryRow, "newest_stories", limit=limit, sources=sources, last=last, id=story)

    def changed(self, after: int, limit: int) -> list[StoryRow]:
        """Return what changed behind a version, all of a version together; a story of size 0 is told no more."""
        with self._database.reading() as tx:
            rows = tx.rows(StoryRow, "changed_stories", after=after, limit=limit)
            if len(rows) < limit:
                return rows
            # The cursor is a version, so a page must not end within one.
            last = rows[-1].version
            whole = [row for row in rows if row.version < last]
            return [*whole, *tx.rows(StoryRow, "stories_of_version", version=last)]

    def version(self) -> int:
        """Return the newest version."""
        return self.state().version

    def members(self, stories: Sequence[int]) -> dict[int, list[StoryMember]]:
        """Return who tells these stories, first told first."""
        found: dict[int, list[StoryMember]] = {story: [] for story in stories}
        with self._database.reading() as tx:
            for member in tx.returning(StoryMember, "story_members", [(story,) for story in found]):
                if len(found[member.story]) < MEMBERS_SHOWN_MAX:
                    found[member.story].append(member)
        return found

    def places(self, cards: Sequence[tuple[str, str]]) -> dict[tuple[str, str], StoryPlace]:
        """Return the stories of those cards (pipeline, key) that are not alone in theirs."""
        with self._database.reading() as tx:
            rows = tx.returning(StoryPlace, "story_places", list(dict.fromkeys(cards)))
        return {(row.pipeline, row.key): row for row in rows}


def read_state(tx: Tx) -> StoryState:
    """Return how far the grouping is; nothing at all before the first item."""
    found = tx.row(StoryState, "story_state")
    assert found is not None
    return found
