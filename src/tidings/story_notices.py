"""Announces a story once, when so many sources tell it as a route asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from tidings.model.clock import DAY_MS, rfc3339
from tidings.model.item import Finding
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Notice, Route
from tidings.model.stories import StoryMember, StoryRow
from tidings.model.vocabulary import vocabulary_of
from tidings.model.workflow import Work
from tidings.publish.deliveries import STORY, deliveries_for
from tidings.store.store import Store

PLACE = "announced stories"
"""Where it keeps how far it has come, beside the positions in the pipelines' streams."""
BATCH = 200
SOURCES_NAMED = 10


@dataclass(frozen=True, slots=True)
class StoryAnnouncer:
    """Follows what changes of stories. A delivery's key names the story, so that none is told twice."""

    store: Store
    routes: Sequence[Route]
    pipelines: Mapping[str, Pipeline]

    def has_news(self) -> bool:
        """Tell whether a story changed since the last look."""
        return self.store.stories.position(PLACE) != str(self.store.stories.version())

    def announce(self) -> None:
        """Let deliveries be born of stories that enough sources tell now, then note how far that went.

        A crash between the two makes the same deliveries again, and the log knows them.
        """
        stories, now_ms = self.store.stories, self.store.now_ms()
        while rows := stories.changed(int(stories.position(PLACE) or 0), BATCH):
            told = [row for row in rows if now_ms - row.last_ms < DAY_MS and row.size]
            members = stories.members([row.id for row in told])
            for pipeline, findings in self._findings(told, members, now_ms).items():
                self.store.intake.append(pipeline, findings)
            stories.note_position(PLACE, str(rows[-1].version))

    def _findings(
        self, rows: Sequence[StoryRow], members: Mapping[int, Sequence[StoryMember]], now_ms: int
    ) -> dict[str, list[Finding]]:
        found: dict[str, list[Finding]] = {}
        for row in rows:
            for route in self.routes:
                own = [each for each in members[row.id] if each.pipeline == route.pipeline]
                if own and row.sources >= route.stories:
                    found.setdefault(route.pipeline, []).extend(self._deliveries(row, route, own[0], members, now_ms))
        return found

    def _deliveries(
        self, row: StoryRow, route: Route, first: StoryMember, members: Mapping[int, Sequence[StoryMember]], now_ms: int
    ) -> tuple[Finding, ...]:
        notice = self._notice(row, first, list(dict.fromkeys(each.source for each in members[row.id])))
        if notice is None:
            return ()
        work = Work(route.pipeline, STORY, str(row.id), "", 1, 1, now_ms, body=None)
        vocabulary = vocabulary_of(self.pipelines.values(), within=route.pipeline)
        return deliveries_for(route.pipeline, work, [notice], [route], vocabulary)

    def _notice(self, row: StoryRow, first: StoryMember, sources: Sequence[str]) -> Notice | None:
        entry = self.store.shelf.get(first.pipeline, first.key)
        collections = {each.singular: each for each in self.pipelines[first.pipeline].collections}
        collection = collections.get(first.key.partition(":")[0])
        if entry is None or collection is None:
            return None
        card = msgspec.json.decode(entry.value)
        summary = card.get(collection.summary_field)
        told_by = f"Told by {', '.join(sources[:SOURCES_NAMED])}"
        return Notice(
            title=str(card.get(collection.title_field) or f"Story {row.id}"),
            url=card.get(collection.link_field),
            text="\n\n".join(part for part in (summary if isinstance(summary, str) else "", told_by) if part),
            summary=summary if isinstance(summary, str) else "",
            time=rfc3339(row.first_ms),
        )
