"""Later readings: `updates` is a short window, so whatever falls out of it is found by reading items again.

Every id is read a second time about two hours after the first, when its author can no longer edit it. Items that got
replies meanwhile, with the ones around them, are read again at growing distances. Where changes may have passed unseen
(we or the API were away, or two windows of `updates` share no id), everything of the last hours is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from tidings.pipelines.hacker_news.body import Given

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
SECOND_READ_MS = 2 * HOUR_MS
GROWTH = 3
WAIT_MS_MAX = 7 * 24 * HOUR_MS
"""A thread that is alive is read again after 6, 18 and 54 hours; then it is left to `updates`."""
MILESTONE_MS = 5 * MINUTE_MS
BATCH_MS = 30 * MINUTE_MS
LATER_MAX = 20_000
"""So many ids wait for a third or later reading; those that would come on top are left to `updates`."""
AWAY_MS = 5 * MINUTE_MS
"""Without `updates` for so long, changes may have been missed."""
AWAY_HORIZON_MS = 24 * HOUR_MS
"""How far back items are read again after such a time."""
TURNOVER_HORIZON_MS = SECOND_READ_MS
TURNOVER_PAUSE_MS = 10 * MINUTE_MS
WINDOW_MAX = 500


class Milestone(msgspec.Struct, array_like=True):
    """Every id up to `walked` was read by this time."""

    at_ms: int
    walked: int


class Later(msgspec.Struct, array_like=True):
    """Ids to be read again at a time, `wait_ms` after they were read before, when `newest` was the newest id."""

    due_ms: int
    wait_ms: int
    newest: int
    ids: list[int]


class RereadPlan(msgspec.Struct, omit_defaults=True):
    """What is to be read again; a part of the source's cursor."""

    trail: list[Milestone] = []
    settled: int = 0
    """Every id walked up to here had its second reading."""
    later: list[Later] = []
    missed: tuple[int, int] | None = None
    """The first and the last id of those whose changes may have been missed; read from the newest down."""
    heard_ms: int = 0
    """When `updates` was last read."""
    turnover_ms: int = 0
    """When a window of `updates` last shared no id with the one before it."""
    window: list[int] = []


@dataclass(frozen=True, slots=True)
class DueIds:
    """Some ids to read again now, and why."""

    why: Literal["second", "later", "missed"]
    ids: Sequence[int]
    wait_ms: int = 0
    newest: int = 0


@dataclass(slots=True)
class Rereads:
    """The plan as one run sees it; changes go into the cursor."""

    plan: RereadPlan
    start: int
    """The first id walked."""
    walked: int
    now_ms: int

    def note_walked(self, walked: int) -> None:
        """Remember when the walk came by; milestones stand some minutes apart."""
        trail = self.plan.trail
        if not trail:
            # What was walked before there was a plan had no milestones: its second reading is past.
            self.plan.settled = max(self.plan.settled, self.walked)
        if len(trail) > 1 and trail[-1].at_ms - trail[-2].at_ms < MILESTONE_MS:
            trail.pop()
        if walked > self.walked or not trail:
            trail.append(Milestone(self.now_ms, walked))
        self.walked = walked
        self._shorten_trail()

    def note_updates(self, ids: Sequence[int]) -> None:
        """Take in a window of `updates`, and notice where changes may have passed between it and the one before."""
        plan, now = self.plan, self.now_ms
        if plan.heard_ms and now - plan.heard_ms > AWAY_MS:
            self._read_since(plan.heard_ms - AWAY_HORIZON_MS)
        elif plan.window and ids and not set(plan.window) & set(ids) and now - plan.turnover_ms > TURNOVER_PAUSE_MS:
            plan.turnover_ms = now
            self._read_since(now - TURNOVER_HORIZON_MS)
        plan.heard_ms, plan.window = now, list(ids[:WINDOW_MAX])

    def next_stretch(self, limit: int) -> DueIds | None:
        """Return the next ids whose time has come, or None."""
        plan = self.plan
        second = self._second_last()
        if second > plan.settled:
            return DueIds("second", range(plan.settled + 1, min(second, plan.settled + limit) + 1), SECOND_READ_MS)
        if plan.later and plan.later[0].due_ms <= self.now_ms:
            batch = plan.later[0]
            return DueIds("later", batch.ids[:limit], batch.wait_ms, batch.newest)
        if plan.missed is not None:
            first, last = plan.missed
            return DueIds("missed", range(last, max(first - 1, last - limit), -1))
        return None

    def close(self, stretch: DueIds, items: Iterable[Given]) -> None:
        """Take a stretch off the plan; plan the next reading of what is alive."""
        plan = self.plan
        if stretch.why == "missed":
            first, last = plan.missed or (1, 0)
            last -= len(stretch.ids)
            plan.missed = (first, last) if first <= last else None
            return
        if stretch.why == "second":
            plan.settled = stretch.ids[-1]
        else:
            del plan.later[0].ids[: len(stretch.ids)]
            if not plan.later[0].ids:
                del plan.later[0]
        self._plan_later(alive(items, stretch.newest), stretch.wait_ms * GROWTH)

    def waiting(self) -> int:
        """Count the readings whose time has come."""
        plan = self.plan
        later = sum(len(batch.ids) for batch in plan.later if batch.due_ms <= self.now_ms)
        first, last = plan.missed or (1, 0)
        return max(0, self._second_last() - plan.settled) + later + last - first + 1

    def _second_last(self) -> int:
        return max((m.walked for m in self.plan.trail if m.at_ms + SECOND_READ_MS <= self.now_ms), default=0)

    def _plan_later(self, ids: Iterable[int], wait_ms: int) -> None:
        if wait_ms > WAIT_MS_MAX:
            return
        later, due_ms = self.plan.later, self.now_ms + wait_ms
        planned = {each for batch in later for each in batch.ids}
        new = [each for each in dict.fromkeys(ids) if each not in planned][: LATER_MAX - len(planned)]
        same = next((b for b in later if b.wait_ms == wait_ms and due_ms - b.due_ms < BATCH_MS), None)
        if same is not None:
            same.ids += new
        elif new:
            later.append(Later(due_ms, wait_ms, self.walked, new))
            later.sort(key=lambda batch: batch.due_ms)

    def _read_since(self, at_ms: int) -> None:
        """Plan to read everything again that was first read since a time."""
        before = max((m.walked for m in self.plan.trail if m.at_ms < at_ms), default=0)
        first = max(self.start, before + 1)
        if first > self.walked:
            return
        if self.plan.missed is not None:
            first = min(first, self.plan.missed[0])
        self.plan.missed = (first, self.walked)

    def _shorten_trail(self) -> None:
        trail, oldest = self.plan.trail, self.now_ms - AWAY_HORIZON_MS - SECOND_READ_MS
        while len(trail) > 2 and trail[1].at_ms < oldest and trail[1].walked <= self.plan.settled:
            del trail[0]


def alive(items: Iterable[Given], newest: int) -> Iterable[int]:
    """Return the items that got a reply since `newest` was the newest id, with what stands around them.

    A reply has a greater id than everything before it.
    """
    for item in items:
        if item.kids and max(item.kids) > newest:
            yield item.id
            yield from item.kids
            if item.parent is not None:
                yield item.parent
