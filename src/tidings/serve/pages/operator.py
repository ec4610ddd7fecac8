"""Pages for operators: items at work, sources, workflows, dead letters, deliveries, alerts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from tidings.model.item import STANDINGS
from tidings.model.pipeline import Pipeline
from tidings.model.publication import DELIVERY
from tidings.model.views import SourceView
from tidings.model.vocabulary import unknown_item_values, unknown_value
from tidings.serve.api.collections import Collections
from tidings.serve.api.filters import read_number, write_cursor
from tidings.serve.api.readable_cards import from_shelf
from tidings.serve.http.operations import CURSOR, Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply
from tidings.serve.markup import tidy
from tidings.serve.pages import graph
from tidings.serve.pages.charts import HOUR_MS, levels, line_chart, slices, sparkline
from tidings.serve.pages.environment import link_query
from tidings.serve.pages.frame import Frame, page_at
from tidings.serve.pages.item import ItemPage
from tidings.serve.pages.now import dead_by_state

PAGE = 50
SPANS = {
    "hour": (HOUR_MS, 60),
    "day": (24 * HOUR_MS, 96),
    "week": (7 * 24 * HOUR_MS, 84),
    "month": (30 * 24 * HOUR_MS, 90),
}


class OperatorPages:
    """The operators' pages."""

    def __init__(self, frame: Frame, collections: Collections, item_page: ItemPage) -> None:
        self._frame = frame
        self._backend = frame.backend
        self._items, self._status = frame.backend.item_views, frame.backend.status_views
        self._read = frame.backend.executor.read
        self._collections = collections
        self._item_page = item_page

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        item = Parameter("id", "Item", "integer", "path", minimum=1, maximum=2**63 - 1)
        filters = tuple(Parameter(name, name) for name in ("pipeline", "kind", "state"))
        standing = Parameter("standing", "standing", values=STANDINGS)
        span = Parameter("span", "span", values=tuple(SPANS))
        return [
            page_at("/items", self._list_items, (*filters, standing, CURSOR)),
            page_at("/items/{id}", self._item, (item,)),
            page_at("/sources", self._sources),
            page_at("/workflows/{pipeline}", self._workflow, (span,)),
            page_at("/dead-letters", self._dead),
            page_at("/deliveries", self._deliveries, (Parameter("channel", "channel"),)),
            page_at("/alerts", self._alerts),
        ]

    async def _list_items(self, call: Call) -> Reply:
        chosen = {name: call[name] for name in ("pipeline", "kind", "state", "standing")}
        rows = await self._read(self._items.items, **chosen, limit=PAGE, before=read_number(call["cursor"]))
        return await self._frame.page(
            call,
            "items.html",
            rows=[(row, self._item_page.name_of(row)) for row in rows],
            chosen=chosen,
            standings=STANDINGS,
            states=self._states(chosen["pipeline"]),
            next_cursor=write_cursor(rows[-1].id) if len(rows) == PAGE else None,
            doubts=[] if rows else self._doubts(call),
        )

    def _doubts(self, call: Call) -> list[str]:
        return unknown_item_values(self._backend.pipelines, call["pipeline"], call["kind"], call["state"])

    def _states(self, pipeline: str | None) -> list[str]:
        chosen = [each for each in self._backend.pipelines.values() if pipeline in (None, "", each.name)]
        return list(dict.fromkeys(s for each in chosen for w in each.workflows.values() for s in w.states))

    async def _item(self, call: Call) -> Reply:
        view = await self._read(self._items.item, call["id"])
        if view is None:
            raise Problem(404, "No such item.", helps="It may have been trimmed; `tidings items` lists what there is.")
        reader = self._collections.reader_of_kind(view.item.pipeline, view.item.kind)
        card_id = self._collections.card_id_of(view)
        entry = await reader.one(card_id) if reader is not None else None
        if reader is None or entry is None or view.item.kind == DELIVERY:
            return await self._item_page.show(call, None, None, view)
        card = from_shelf(reader, entry, self._backend.root_path, card_id=card_id)
        return await self._item_page.show(call, reader, card, view)

    async def _sources(self, call: Call) -> Reply:
        views = await self._read(self._status.sources)
        until = self._backend.clock.now_ms()
        series = await self._read(self._found, views, until - 14 * 24 * HOUR_MS)
        sparks = {
            name: sparkline(slices(points, until - 14 * 24 * HOUR_MS, until, 14), f"New from {tidy(name, 80)}, per day")
            for name, points in series.items()
        }
        groups: dict[str, list[SourceView]] = {}
        for view in views:
            groups.setdefault(view.pipeline, []).append(view)
        followers = (await self._read(self._status.status)).followers
        return await self._frame.page(call, "sources.html", groups=groups, sparks=sparks, followers=followers)

    def _found(self, views: list[SourceView], since_ms: int) -> dict[str, Any]:
        return {view.name: self._status.points(f"found:{view.name}", since_ms=since_ms) for view in views}

    async def _workflow(self, call: Call) -> Reply:
        pipeline = self._backend.pipelines.get(call["pipeline"])
        if pipeline is None:
            raise Problem(404, "No such pipeline.", helps="The rail on the left names them all.")
        situation = await self._frame.situation()
        view = situation.status.pipelines.get(pipeline.name)
        kinds = view.kinds if view is not None else {}
        dead = dead_by_state(situation.dead)
        graphs = {}
        for kind, workflow in pipeline.workflows.items():
            dead_here = {state: dead.get((pipeline.name, kind, state), 0) for state in workflow.states}
            graphs[kind] = graph.draw(workflow, kinds.get(kind, {}), self._links(pipeline, kind), dead_here)
        span = call["span"] or await self._usual_span(pipeline.name)
        return await self._frame.page(
            call,
            "workflow.html",
            pipeline=pipeline,
            view=view,
            graphs=graphs,
            charts=await self._charts(pipeline.name, span),
            span=span,
            spans=list(SPANS),
        )

    async def _usual_span(self, pipeline: str) -> str:
        """Show a day; the last hour where there is no older history that a day would show."""
        now = self._backend.clock.now_ms()
        points = await self._read(self._status.points, f"settled:{pipeline}", since_ms=now - SPANS["day"][0])
        return "day" if points and now - points[0].at > 2 * HOUR_MS else "hour"

    def _links(self, pipeline: Pipeline, kind: str) -> dict[str, str]:
        root = self._backend.root_path
        states = pipeline.workflows[kind].states
        return {s: f"{root}/items{link_query({'pipeline': pipeline.name, 'kind': kind, 'state': s})}" for s in states}

    async def _charts(self, pipeline: str, span: str) -> list[tuple[str, Any]]:
        length, buckets = SPANS[span]
        until = self._backend.clock.now_ms()
        since = until - length
        names = ("settled", "due", "lag", "dead")
        series = await asyncio.gather(
            *(self._read(self._status.points, f"{name}:{pipeline}", since_ms=since) for name in names)
        )
        labels = [_time_label(since + (index + 1) * length // buckets, span) for index in range(buckets)]
        drawn = [("Steps settled", line_chart(slices(series[0], since, until, buckets), labels, "Steps settled"))]
        titles = ("", "Waiting to be processed", "Oldest waiting, in seconds", "Dead letters")
        tones = ("", "wait", "accent", "bad")
        for index in (1, 2, 3):
            if series[index] or index == 1:
                values = levels(series[index], since, until, buckets)
                drawn.append((titles[index], line_chart(values, labels, titles[index], tones[index])))
        return drawn

    async def _dead(self, call: Call) -> Reply:
        groups = await self._read(self._items.dead_letters)
        return await self._frame.page(
            call, "dead_letters.html", groups=groups, total=sum(group.count for group in groups)
        )

    async def _deliveries(self, call: Call) -> Reply:
        views, channels = await asyncio.gather(
            self._read(self._items.deliveries, limit=100, channel=call["channel"]), self._read(self._status.channels)
        )
        parents = {view.id: self._item_page.href_of(view.pipeline, view.parent) for view in views}
        doubt = None if views else unknown_value("channel", call["channel"], [each.name for each in channels])
        return await self._frame.page(
            call,
            "deliveries.html",
            views=views,
            channels=channels,
            chosen=call["channel"],
            parents=parents,
            doubt=doubt,
        )

    async def _alerts(self, call: Call) -> Reply:
        views = await self._read(self._status.alerts, all_of_them=True)
        firing = [view for view in views if view.cleared_at is None]
        past = [view for view in views if view.cleared_at is not None]
        return await self._frame.page(call, "alerts.html", firing=firing, past=past)


def _time_label(at: int, span: str) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return f"{moment:%H:%M}" if span in ("hour", "day") else f"{moment.day} {moment:%b}"
