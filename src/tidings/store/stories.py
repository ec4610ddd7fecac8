"""Stories as they are kept: what was grouped, in which order, and what a person has decided.

All that writes holds one lock. A call that changes the groups has to name the step that it has seen, so that of two
processes that group at once only one can be right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidings.model.clock import DAY_MS
from tidings.model.errors import BadInput
from tidings.model.stories import (
    GroupedTelling,
    PlacedTelling,
    StoryMember,
    StorySpan,
    Telling,
    WaitingTelling,
)
from tidings.store.db.database import Tx
from tidings.store.story_reader import StoryReader, read_state

LOCK = "stories"
KEPT_MS = 30 * DAY_MS
"""So long what is gone is remembered: until then stories can be grouped again exactly as they came."""


class StandingTelling(NamedTuple):
    """An item that is grouped already."""

    item: int
    story: int
    gone_at: int | None
    source: str
    key: str


class StoryPosition(NamedTuple):
    """How far a pipeline's stream was followed."""

    position: str


class NewestSeen(NamedTuple):
    """When the newest item was seen."""

    seen_ms: int | None


class StoryId(NamedTuple):
    """A story's number."""

    id: int


class StoryDecision(NamedTuple):
    """What a person said of an item: it belongs to the story of another one, or (None) to one of its own."""

    item: int
    target: int | None


class MovedMember(NamedTuple):
    """A row of `move_members`."""

    item: int
    story: int


class StoryStore(StoryReader):
    """What the follower writes, what readers see, and what operators decide."""

    def take_turn(self, owner: str, turn_ms: int) -> bool:
        """Take or keep the right to group; False while another process has it."""
        with self._database.transaction() as tx:
            self._lock(tx)
            return tx.run("take_story_turn", owner=owner, turn_ms=turn_ms) > 0

    def leave_turn(self, owner: str) -> None:
        """Let another process go on at once."""
        with self._database.transaction() as tx:
            tx.run("leave_story_turn", owner=owner)

    def position(self, pipeline: str) -> str | None:
        """Return how far a pipeline's stream was followed."""
        with self._database.reading() as tx:
            found = tx.row(StoryPosition, "story_position", pipeline=pipeline)
        return found.position if found else None

    def note_position(self, name: str, position: str) -> None:
        """Note how far something else has come that follows stories."""
        with self._database.transaction() as tx:
            tx.run("put_story_position", pipeline=name, position=position)

    def take_in(self, pipeline: str, tellings: Sequence[Telling], gone: Sequence[int], position: str) -> None:
        """Note what is to be grouped and what is told no more, with the position behind both."""
        with self._database.transaction() as tx:
            self._lock(tx)
            told = {each.item: each for each in tellings}
            standing = tx.returning(StandingTelling, "standing_stories", [(item,) for item in (*told, *gone)])
            tx.put("put_tellings", tellings)
            tx.put("drop_waiting_tellings", [(item,) for item in gone])
            tx.put("mark_tellings_gone", [(item,) for item in gone])
            _tell_again(tx, {each.story for each in standing if _has_changed(each, told.get(each.item))})
            tx.run("put_story_position", pipeline=pipeline, position=position)

    def start_over(self, pipeline: str) -> None:
        """Follow a pipeline from the beginning: what does not come along again is gone. Who told what is kept."""
        with self._database.transaction() as tx:
            self._lock(tx)
            stories = [each.id for each in tx.rows(StoryId, "stories_of_pipeline", pipeline=pipeline)]
            tx.run("mark_pipeline_gone", pipeline=pipeline)
            _tell_again(tx, stories)
            tx.run("drop_story_position", pipeline=pipeline)

    def waiting(self, limit: int, *, before: int | None = None) -> list[WaitingTelling]:
        """Return what is to be grouped next; with `before`, only what had its place before that one."""
        with self._database.reading() as tx:
            return tx.rows(WaitingTelling, "waiting_tellings", limit=limit, before=before)

    def grouped(self, window_ms: int, limit: int) -> tuple[list[GroupedTelling], dict[int, StorySpan]]:
        """Return what is in the window, in order, and the spans of its stories."""
        with self._database.reading() as tx:
            newest = tx.row(NewestSeen, "newest_seen")
            since = (newest.seen_ms if newest and newest.seen_ms is not None else 0) - window_ms
            rows = tx.rows(GroupedTelling, "placed_tellings", since=since, limit=limit)
            stories = dict.fromkeys(row.story for row in rows)
            spans = tx.returning(StorySpan, "story_spans", [(story,) for story in stories])
        return rows, {span.story: span for span in spans}

    def place(self, step: int, place: int, placed: Sequence[PlacedTelling]) -> bool:
        """Write where items belong; False if the groups have changed since `step`: nothing is written then."""
        with self._database.transaction() as tx:
            self._lock(tx)
            if not tx.run("take_story_step", step=step, place=place):
                return False
            tx.put("place_tellings", placed)
            _tell_again(tx, {each.story for each in placed})
        return True

    def apply_decisions(self, place: int) -> None:
        """Apply once more what a person decided at a place."""
        with self._database.transaction() as tx:
            self._lock(tx)
            decided = tx.rows(StoryDecision, "decisions_at", place=place)
            state = read_state(tx)
            if state.decision == place:
                tx.run("take_story_step", step=state.step, place=state.place)
                self._apply(tx, place, decided)

    def begin_again(self) -> int:
        """Let everything be grouped again, in the order in which it came; return how many items that is."""
        with self._database.transaction() as tx:
            self._lock(tx)
            state = read_state(tx)
            tx.run("take_story_step", step=state.step, place=state.place)
            count = tx.run("ungroup_stories", settled=state.settled)
            tx.run("undo_decisions", settled=state.settled)
            tx.run("empty_stories", version=tx.value("draw_story_version"))
        return count

    def tidy(self, window_ms: int) -> int:
        """Forget what is gone for long. What it was compared with is settled: without it that could not come out again.

        Items in a window are compared, so what came two windows before the newest had its effect on nothing in the
        last one.
        """
        with self._database.transaction() as tx:
            self._lock(tx)
            newest = tx.row(NewestSeen, "newest_seen")
            seen_ms = newest.seen_ms if newest and newest.seen_ms is not None else 0
            tx.run("drop_empty_stories", keep_ms=KEPT_MS)
            dropped = tx.run("drop_old_tellings", keep_ms=KEPT_MS, before=seen_ms - 2 * window_ms)
            if dropped:
                tx.run("settle_stories", before=seen_ms - window_ms)
        return dropped

    def split(self, items: Sequence[int], *, actor: str) -> int:
        """Put items of one story into another of their own; return its number. BadInput where they are not of one."""
        with self._database.transaction() as tx:
            self._lock(tx)
            _check_grouped(tx)
            standing = self._standing(tx, items)
            stories = sorted({each.story for each in standing})
            if len(stories) != 1:
                raise BadInput(
                    f"these items are in several stories: {', '.join(map(str, stories))}; split one at a time"
                )
            (members,) = _members(tx, stories).values()
            if not set(members) - set(items):
                raise BadInput("that is the whole story: name only those that tell something else")
            return self._decide(tx, [StoryDecision(item, None) for item in dict.fromkeys(items)], actor)

    def join(self, story: int, others: Sequence[int], *, actor: str) -> int:
        """Put all that tells other stories into one; return how many items moved."""
        with self._database.transaction() as tx:
            self._lock(tx)
            _check_grouped(tx)
            members = _members(tx, list(dict.fromkeys([story, *others])))
            if missing := [each for each, items in members.items() if not items]:
                raise BadInput(f"there is no story {missing[0]}")
            moving = [item for each, items in members.items() if each != story for item in items]
            if not moving:
                raise BadInput("name another story to join with it")
            target = members[story][0]
            self._decide(tx, [StoryDecision(item, target) for item in moving], actor)
            return len(moving)

    def _lock(self, tx: Tx) -> None:
        self._database.lock(tx, LOCK)
        tx.run("begin_story_state")

    def _standing(self, tx: Tx, items: Sequence[int]) -> list[StandingTelling]:
        found = tx.returning(StandingTelling, "standing_stories", [(item,) for item in dict.fromkeys(items)])
        standing = [each for each in found if each.gone_at is None]
        if missing := sorted(set(items) - {each.item for each in standing}):
            raise BadInput(f"item {missing[0]} is in no story")
        return standing

    def _decide(self, tx: Tx, decided: Sequence[StoryDecision], actor: str) -> int:
        """Write a decision at a place of its own and apply it; return the place, which also names a new story."""
        state = read_state(tx)
        place = state.place + 1
        tx.run("take_story_step", step=state.step, place=place)
        tx.put("put_decisions", decided, place=place, actor=actor)
        self._apply(tx, place, decided)
        return place

    def _apply(self, tx: Tx, place: int, decided: Sequence[StoryDecision]) -> None:
        """Move the items; one whose target is gone stays where it is."""
        named = [(item,) for each in decided for item in (each.item, each.target) if item is not None]
        stands = {each.item: each.story for each in tx.returning(StandingTelling, "standing_stories", named)}
        moved = [
            MovedMember(each.item, place if each.target is None else stands[each.target])
            for each in decided
            if each.item in stands and (each.target is None or each.target in stands)
        ]
        tx.put("move_members", moved)
        tx.run("apply_decisions", place=place)
        _tell_again(tx, {stands[each.item] for each in moved} | {each.story for each in moved})


def _check_grouped(tx: Tx) -> None:
    """Refuse decisions while all is grouped again: they would come at another place than what they speak of."""
    if read_state(tx).is_again:
        raise BadInput("stories are being grouped again; try again when that is done")


def _members(tx: Tx, stories: Sequence[int]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {story: [] for story in stories}
    for member in tx.returning(StoryMember, "story_members", [(story,) for story in stories]):
        found[member.story].append(member.item)
    return found


def _tell_again(tx: Tx, stories: Iterable[int]) -> None:
    if rows := [(story,) for story in sorted(set(stories))]:
        tx.put("put_stories", rows, version=tx.value("draw_story_version"))


def _has_changed(standing: StandingTelling, telling: Telling | None) -> bool:
    """Tell whether a story is another one now: an item of it came back, went, or comes from elsewhere."""
    if telling is None:
        return standing.gone_at is None
    return standing.gone_at is not None or (standing.source, standing.key) != (telling.source, telling.key)
