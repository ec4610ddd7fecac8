"""The first page: one sentence of health, each pipeline in a row, what needs a person, and the latest."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.model.item_views import DeadGroup
from tidings.model.pipeline import Pipeline
from tidings.model.publication import DELIVERY
from tidings.model.views import PipelineView, Point, StatusView
from tidings.serve.api.collections import Collections
from tidings.serve.api.readable_cards import ReadableCard, from_shelf
from tidings.serve.api.threads import front_of
from tidings.serve.http.operations import Call, Operation
from tidings.serve.http.replies import Reply
from tidings.serve.pages.charts import HOUR_MS, slices, sparkline
from tidings.serve.pages.frame import Frame
from tidings.serve.pages.graph import tone_of
from tidings.serve.pages.phrases import count, lasting

"""Notices have a page of their own."""
_LATEST = 10
_FROM_ONE = 3
_NEEDS_MAX = 20
_COUNTED_MS = 120_000


@dataclass(frozen=True, slots=True)
class Strip:
    """One box of a state strip: so many items in a state, all of them well, dead or at rest."""

    state: str
    word: str
    count: int
    grow: int
    tone: str
    standing: str = ""


class Now:
    """The overview."""

    def __init__(self, frame: Frame, collections: Collections) -> None:
        self._frame = frame
        self._backend = frame.backend
        self._collections = collections

    def operations(self) -> list[Operation]:
        """Declare the route."""
        return [Operation("GET", "/", "read", self._show, "Now", is_page=True, any_query=True)]

    async def _show(self, call: Call) -> Reply:
        situation, latest, sparks = await asyncio.gather(self._frame.situation(), self._latest(), self._sparks())
        dead = dead_by_state(situation.dead)
        rows = [
            {"pipeline": each, "view": view, "strip": strip_of(each, view, dead), "spark": sparks.get(each.name)}
            for each in self._backend.pipelines.values()
            if (view := situation.status.pipelines.get(each.name)) is not None
        ]
        tone, sentence = health(situation.status, situation.asks(self._backend.pipelines))
        needs = situation.needs(self._backend.pipelines)[:_NEEDS_MAX]
        return await self._frame.page(
            call, "now.html", rows=rows, needs_you=needs, latest=latest, tone=tone, sentence=sentence
        )

    async def _sparks(self) -> dict[str, Any]:
        until = self._backend.clock.now_ms()
        names = list(self._backend.pipelines)
        series = await self._backend.executor.read(self._settled, names, until - HOUR_MS)
        return {
            name: sparkline(slices(points, until - HOUR_MS, until, 30), f"Steps of {name} in the last hour")
            for name, points in series.items()
        }

    def _settled(self, names: list[str], since_ms: int) -> dict[str, list[Point]]:
        return {name: self._backend.status_views.points(f"settled:{name}", since_ms=since_ms) for name in names}

    async def _latest(self) -> list[ReadableCard]:
        """Return the newest published cards across pipelines; replies and what is withdrawn stay below their roots."""
        found: list[tuple[int, ReadableCard]] = []
        for reader in self._collections.readers.values():
            if reader.collection.kind == DELIVERY:
                continue
            listing = await reader.page(front_of(reader.collection), _LATEST, None)
            for each in listing.shown:
                card = from_shelf(reader, each.entry, self._backend.root_path, each.card)
                found.append((card.at or 0, card))
        now = self._backend.clock.now_ms()
        found.sort(key=lambda pair: min(pair[0], now), reverse=True)
        return mixed([card for _, card in found], _LATEST)


def mixed(cards: list[ReadableCard], limit: int) -> list[ReadableCard]:
    """Take the first ones, but let no pipeline fill the list while others have something to tell."""
    places: dict[int, int] = {}
    seen: dict[str, int] = {}
    for index, card in enumerate(cards):
        seen[card.pipeline] = seen.get(card.pipeline, 0) + 1
        places[index] = (seen[card.pipeline] - 1) // _FROM_ONE
    chosen = sorted(range(len(cards)), key=lambda index: (places[index], index))[:limit]
    return [cards[index] for index in sorted(chosen)]


def health(status: StatusView, needs: int) -> tuple[str, str]:
    """Say in one sentence how we are."""
    views = status.pipelines.values()
    settled = sum(view.settled_last_hour for view in views)
    oldest = max((view.lag_seconds for view in views), default=0)
    waiting = f"oldest waiting {lasting(oldest)}" if any(view.lags for view in views) else "nothing waits"
    # Steps are counted minute by minute: in the first one none is counted, though many may be made.
    has_just_begun = not settled and any((view.last_processed_at or 0) > status.at - _COUNTED_MS for view in views)
    steps = "The first steps are being made" if has_just_begun else f"{count(settled, 'step')} in the last hour"
    asks = f"{needs} need{'s' if needs == 1 else ''} you" if needs else "nothing needs you"
    tone, word = ("bad", "Trouble") if status.alerts else ("wait", "Working") if needs else ("good", "Healthy")
    return tone, f"{word}. {steps}, {waiting}, {asks}."


def dead_by_state(groups: Sequence[DeadGroup]) -> dict[tuple[str, str, str], int]:
    """Count dead letters by pipeline, kind and state."""
    found: dict[tuple[str, str, str], int] = {}
    for group in groups:
        name = (group.pipeline, group.kind, group.state)
        found[name] = found.get(name, 0) + group.count
    return found


def strip_of(pipeline: Pipeline, view: PipelineView, dead: Mapping[tuple[str, str, str], int]) -> list[Strip]:
    """Return the states that hold anything, in the order of their workflows, as wide as their share."""
    tones: dict[str, str] = {}
    for workflow in pipeline.workflows.values():
        for state in workflow.states:
            tones.setdefault(state, tone_of(workflow, state))
    dead_here: dict[str, int] = {}
    for (name, kind, state), number in dead.items():
        if name == pipeline.name and kind != DELIVERY:
            dead_here[state] = dead_here.get(state, 0) + number
    total = sum(view.states.values()) or 1
    boxes: list[Strip] = []
    for state in [*tones, *(state for state in view.states if state not in tones)]:
        for word, number, tone, standing in _boxes(view, state, tones.get(state, "parked"), dead_here.get(state, 0)):
            boxes.append(Strip(state, word, number, max(1, round(number / total * 20)), tone, standing))
    return boxes


def _boxes(view: PipelineView, state: str, tone: str, dead: int) -> list[tuple[str, int, str, str]]:
    """Take a state apart where items on their way lie beside dead letters and others that stay."""
    held, word = view.states.get(state, 0), state.replace("_", " ")
    if tone != "plain":
        return [(word, held, tone, "")] if held else []
    open_now = min(held, view.waiting.get(state, 0))
    dead = min(held - open_now, dead)
    rest = held - open_now - dead
    if view.rejected and view.parked:
        resting = ("at rest", "")
    else:
        resting = ("rejected", "rejected") if view.rejected else ("parked", "parked") if view.parked else ("", "")
    boxes = [
        (word, open_now, "plain", ""),
        (f"{word}, dead", dead, "bad", "dead"),
        (f"{word}, {resting[0]}" if resting[0] else word, rest, "parked" if resting[0] else "plain", resting[1]),
    ]
    return [box for box in boxes if box[1]]
