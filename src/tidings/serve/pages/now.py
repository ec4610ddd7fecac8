"""The first page: one sentence of health, each pipeline in a row, what needs a person, and the latest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from tidings.model.pipeline import Pipeline
from tidings.model.views import DeadGroup, PipelineView, Point, SourceView, StatusView
from tidings.serve.collections import Collections
from tidings.serve.filters import Card
from tidings.serve.operations import Call, Operation
from tidings.serve.pages.charts import slices, sparkline
from tidings.serve.pages.frame import Frame
from tidings.serve.pages.graph import tone_of
from tidings.serve.pages.suits import Shape
from tidings.serve.pages.wording import count, lasting, shell, tidy
from tidings.serve.replies import Reply

HOUR_MS = 3_600_000
DELIVERY = "delivery"
"""Notices have a page of their own."""
_LATEST = 10
_FROM_ONE = 3
_NEEDS_MAX = 20
_UNHEALTHY = ("failing", "silent", "paused")


@dataclass(frozen=True, slots=True)
class Need:
    """Something a person should look at: what, one action, and the action's command."""

    tone: str
    word: str
    text: str
    detail: str
    action: str | None
    button: str
    fields: dict[str, Any]
    command: str
    href: str


@dataclass(frozen=True, slots=True)
class Strip:
    """One box of a state strip."""

    state: str
    count: int
    grow: int
    tone: str


class Now:
    """The overview."""

    def __init__(self, frame: Frame, collections: Collections) -> None:
        self._frame = frame
        self._parts = frame.parts
        self._collections = collections

    def operations(self) -> list[Operation]:
        """Declare the route."""
        return [Operation("GET", "/", "read", self._show, "Now", is_page=True, any_query=True)]

    async def _show(self, call: Call) -> Reply:
        read, desk = self._parts.executor.read, self._parts.desk
        status = await self._frame.status()
        dead, channels, latest, sparks = await asyncio.gather(
            read(desk.dead_letters), read(desk.channels), self._latest(), self._sparks()
        )
        needs = [*_dead_needs(dead), *_source_needs(status), *_channel_needs(channels), *_budget_needs(status)]
        rows = [
            {"pipeline": each, "view": view, "strip": strip_of(each, view), "spark": sparks.get(each.name)}
            for each in self._parts.pipelines.values()
            if (view := status.pipelines.get(each.name)) is not None
        ]
        tone, sentence = health(status, len(needs))
        return await self._frame.page(
            call, "now.html", rows=rows, needs_you=needs[:_NEEDS_MAX], latest=latest, tone=tone, sentence=sentence
        )

    async def _sparks(self) -> dict[str, Any]:
        until = self._parts.clock.now_ms()
        names = list(self._parts.pipelines)
        series = await self._parts.executor.read(self._settled, names, until - HOUR_MS)
        return {
            name: sparkline(slices(points, until - HOUR_MS, until, 30), f"Steps of {name} in the last hour")
            for name, points in series.items()
        }

    def _settled(self, names: list[str], since_ms: int) -> dict[str, list[Point]]:
        return {name: self._parts.desk.points(f"settled:{name}", since_ms=since_ms) for name in names}

    async def _latest(self) -> list[Shape]:
        """Return the newest published cards across pipelines; replies and what is withdrawn stay below their roots."""
        found: list[tuple[int, Shape]] = []
        for (pipeline, _), reader in self._collections.readers.items():
            if reader.collection.kind == DELIVERY:
                continue
            listing = await reader.page(is_root, _LATEST, None)
            for each in listing.shown:
                shape = Shape(
                    pipeline,
                    reader.collection,
                    reader.id_of(each.entry.key),
                    each.card,
                    sort=each.entry.sort,
                    root=self._parts.root_path,
                )
                found.append((shape.at or 0, shape))
        now = self._parts.clock.now_ms()
        found.sort(key=lambda pair: min(pair[0], now), reverse=True)
        return mixed([shape for _, shape in found], _LATEST)


def mixed(shapes: list[Shape], limit: int) -> list[Shape]:
    """Take the first ones, but let no pipeline fill the list while others have something to tell."""
    places: dict[int, int] = {}
    seen: dict[str, int] = {}
    for index, shape in enumerate(shapes):
        seen[shape.pipeline] = seen.get(shape.pipeline, 0) + 1
        places[index] = (seen[shape.pipeline] - 1) // _FROM_ONE
    chosen = sorted(range(len(shapes)), key=lambda index: (places[index], index))[:limit]
    return [shapes[index] for index in sorted(chosen)]


def is_root(card: Card) -> bool:
    """Tell whether a card stands for itself."""
    return card.get("parent") is None and card.get("poll") is None and not card.get("deleted") and not card.get("dead")


def health(status: StatusView, needs: int) -> tuple[str, str]:
    """Say in one sentence how we are."""
    views = status.pipelines.values()
    settled = sum(view.settled_last_hour for view in views)
    oldest = max((view.oldest_due_seconds or 0 for view in views), default=0)
    waiting = f"oldest waiting {lasting(oldest)}" if any(view.due for view in views) else "nothing waits"
    asks = f"{needs} need{'s' if needs == 1 else ''} you" if needs else "nothing needs you"
    tone, word = ("bad", "Trouble") if status.alerts else ("wait", "Working") if needs else ("good", "Healthy")
    return tone, f"{word}. {count(settled, 'step')} in the last hour, {waiting}, {asks}."


def strip_of(pipeline: Pipeline, view: PipelineView) -> list[Strip]:
    """Return the states that hold anything, in the order of their workflows, as wide as their share."""
    tones: dict[str, str] = {}
    for workflow in pipeline.workflows.values():
        for state in workflow.states:
            tones.setdefault(state, tone_of(workflow, state))
    total = sum(view.states.values()) or 1
    ordered = [*tones, *(state for state in view.states if state not in tones)]
    return [
        Strip(state, view.states[state], max(1, round(view.states[state] / total * 20)), tones.get(state, "parked"))
        for state in ordered
        if view.states.get(state)
    ]


def _dead_needs(groups: list[DeadGroup]) -> list[Need]:
    return [
        Need(
            "bad",
            count(group.count, "dead letter"),
            tidy(group.cause, 160) or "no cause given",
            f"{group.pipeline}, {group.kind} in {group.state}",
            "/actions/revive",
            "Revive",
            {"pipeline": group.pipeline, "cause": group.cause},
            f"tidings dead revive --pipeline {shell(group.pipeline)} --cause {shell(group.cause)}",
            "/dead-letters",
        )
        for group in groups
    ]


def _source_needs(status: StatusView) -> list[Need]:
    views = [source for view in status.pipelines.values() for source in view.sources]
    return [_source_need(view) for view in views if view.health in _UNHEALTHY]


def _source_need(view: SourceView) -> Need:
    is_paused = view.health == "paused"
    return Need(
        {"failing": "bad", "silent": "wait"}.get(view.health, "parked"),
        f"{view.health} source",
        view.name,
        tidy(view.error, 200) if view.error else ("paused by hand" if is_paused else "silent for longer than usual"),
        f"/actions/{'resume' if is_paused else 'check'}",
        "Resume" if is_paused else "Check now",
        {"part": f"source:{view.name}", "source": view.name},
        f"tidings resume --source {shell(view.name)}"
        if is_paused
        else f"tidings discover {shell(view.pipeline)} --source {shell(view.name)}",
        "/sources",
    )


def _channel_needs(channels: list[Any]) -> list[Need]:
    return [
        Need(
            "parked",
            "paused channel",
            view.name,
            tidy(view.reason, 200) or f"{count(view.waiting, 'notice')} waiting",
            "/actions/resume",
            "Resume",
            {"part": f"channel:{view.name}"},
            f"tidings resume --channel {shell(view.name)}",
            "/deliveries",
        )
        for view in channels
        if view.paused
    ]


def _budget_needs(status: StatusView) -> list[Need]:
    budgets = {budget.name: budget for view in status.pipelines.values() for budget in view.budgets}
    return [
        Need(
            "wait",
            "budget nearly spent",
            tidy(budget.name, 80),
            f"{budget.spent + budget.reserved:,} of {budget.limit:,} today; the rest waits for tomorrow",
            None,
            "",
            {},
            "tidings status",
            "/alerts",
        )
        for budget in budgets.values()
        if budget.limit and budget.spent + budget.reserved >= 0.9 * budget.limit
    ]
