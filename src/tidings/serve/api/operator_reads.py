"""What operators see over HTTP: status, pipelines, items and their life lines, dead letters, sources, channels."""

from __future__ import annotations

import re
from typing import Any

from tidings.model.item import STANDINGS
from tidings.model.item_views import DeadGroup, DeliveryView, ItemRow, ItemView
from tidings.model.pipeline import Pipeline
from tidings.model.views import AlertView, ChannelView, Point, SourceView, StatusView
from tidings.model.vocabulary import unknown_item_values, unknown_value
from tidings.model.workflow import Transition, Workflow, name_of
from tidings.serve.api.collections import NULLABLE_STRING
from tidings.serve.api.filters import read_number, write_cursor
from tidings.serve.backend import Backend
from tidings.serve.http.operations import CURSOR, LIMIT, Call, Handler, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply, answer
from tidings.serve.http.wire import plain

MEASURES = ("due", "dead", "lag", "items", "settled", "published")
ITEM_ID = Parameter("id", "The item's opaque id.", "integer", "path", minimum=1, maximum=2**63 - 1, example=1)
_HOURS = Parameter("hours", "How far back.", "integer", minimum=1, maximum=720, default=24)
_EVERYTHING = Parameter("all", "The recent history too.", "boolean", default=False)
_CHANNEL = Parameter("channel", "Only this channel.")
_ITEM_FILTERS = (
    Parameter("pipeline", "Only this pipeline."),
    Parameter("kind", "Only this kind."),
    Parameter("key", "Only the item with this key; needs pipeline and kind."),
    Parameter("state", "Only this state."),
    Parameter("standing", "Only this standing.", values=STANDINGS),
)


class OperatorReads:
    """The operators' reads."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._items, self._views = backend.item_views, backend.status_views
        self._read = backend.executor.read

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        name = pipeline_parameter(self._backend)
        series = _series(self._backend)
        rows = _list_of("items", ItemRow, next_cursor=NULLABLE_STRING)
        groups = _list_of("dead_letters", DeadGroup, total={"type": "integer"})
        deliveries, points = _list_of("deliveries", DeliveryView), _list_of("points", Point)
        return [
            _get("/status", self._status, "Everything at a glance", StatusView),
            _get("/pipelines", self._pipelines, "The pipelines", _list_of("pipelines", {"type": "object"})),
            _get("/pipelines/{pipeline}", self._pipeline, "One pipeline", {"type": "object"}, name, missing=True),
            _get("/alerts", self._alerts, "Firing alerts", _list_of("alerts", AlertView), _EVERYTHING),
            _get("/sources", self._sources, "Every source and its health", _list_of("sources", SourceView)),
            _get("/deliveries", self._deliveries, "Notices, newest first", deliveries, _CHANNEL, LIMIT),
            _get("/channels", self._channels, "The channels and their limiters", _list_of("channels", ChannelView)),
            _get("/history", self._history, "Low-resolution history of a series", points, series, _HOURS),
            _get("/items", self._list_items, "Items, newest first", rows, *_ITEM_FILTERS, LIMIT, CURSOR),
            _get("/items/{id}", self._item, "One item, whole: its life line", ItemView, ITEM_ID, missing=True),
            _get("/dead-letters", self._dead, "Dead letters grouped by cause", groups),
        ]

    async def _status(self, _call: Call) -> Reply:
        return answer(plain(await self._read(self._views.status)))

    async def _pipelines(self, _call: Call) -> Reply:
        status = await self._read(self._views.status)
        return answer({"pipelines": [describe(each, status) for each in self._backend.pipelines.values()]})

    async def _pipeline(self, call: Call) -> Reply:
        pipeline = self._backend.pipelines.get(call["pipeline"])
        if pipeline is None:
            raise no_pipeline()
        return answer(describe(pipeline, await self._read(self._views.status)))

    async def _alerts(self, call: Call) -> Reply:
        return answer({"alerts": plain(await self._read(self._views.alerts, all_of_them=call["all"]))})

    async def _sources(self, _call: Call) -> Reply:
        return answer({"sources": plain(await self._read(self._views.sources))})

    async def _deliveries(self, call: Call) -> Reply:
        found = await self._read(self._items.deliveries, limit=call["limit"], channel=call["channel"])
        if call["channel"] and not found:
            known = [each.name for each in await self._read(self._views.channels)]
            refuse_unknown("channel", unknown_value("channel", call["channel"], known))
        return answer({"deliveries": plain(found)})

    async def _channels(self, _call: Call) -> Reply:
        return answer({"channels": plain(await self._read(self._views.channels))})

    async def _history(self, call: Call) -> Reply:
        since_ms = self._backend.clock.now_ms() - call["hours"] * 3_600_000
        return answer({"points": plain(await self._read(self._views.points, call["series"], since_ms=since_ms))})

    async def _list_items(self, call: Call) -> Reply:
        if call["key"]:
            return answer({"items": await self._named(call), "next_cursor": None})
        rows = await self._read(
            self._items.items,
            pipeline=call["pipeline"],
            kind=call["kind"],
            state=call["state"],
            standing=call["standing"],
            limit=call["limit"],
            before=read_number(call["cursor"]),
        )
        if not rows:
            self._refuse_unknown_items(call)
        cursor = write_cursor(rows[-1].id) if len(rows) == call["limit"] else None
        return answer({"items": plain(rows), "next_cursor": cursor})

    async def _named(self, call: Call) -> list[Any]:
        if not call["pipeline"] or not call["kind"]:
            raise Problem(400, "A key needs its pipeline and kind.", where="query parameter key")
        view = await self._read(self._items.find, call["pipeline"], call["kind"], call["key"])
        if view is None:
            self._refuse_unknown_items(call)
        return [plain(view.item)] if view is not None else []

    def _refuse_unknown_items(self, call: Call) -> None:
        for doubt in unknown_item_values(self._backend.pipelines, call["pipeline"], call["kind"], call["state"]):
            refuse_unknown(doubt.split()[1], doubt)

    async def _item(self, call: Call) -> Reply:
        view = await self._read(self._items.item, call["id"])
        if view is None:
            raise no_item()
        return answer(plain(view))

    async def _dead(self, _call: Call) -> Reply:
        groups = await self._read(self._items.dead_letters)
        return answer({"dead_letters": plain(groups), "total": sum(group.count for group in groups)})


def pipeline_parameter(backend: Backend) -> Parameter:
    """Declare a pipeline's name in an address."""
    return Parameter("pipeline", "The pipeline's name.", place="path", example=next(iter(backend.pipelines), "p"))


def _series(backend: Backend) -> Parameter:
    """Declare the name of a series: what is measured, and of which pipeline or source."""
    names, sample = "|".join(re.escape(each) for each in backend.pipelines), next(iter(backend.pipelines), "p")
    return Parameter(
        "series",
        f"What is measured, and where: {', '.join(MEASURES)} of a pipeline, `found` of a source. "
        f"Such as `due:{sample}`, `settled:{sample}` or `found:{sample}.source`.",
        pattern=rf"^(({'|'.join(MEASURES)}):({names})|found:[0-9A-Za-z_.:-]+)$",
        form=f"one of {', '.join(MEASURES)}, a colon and one of {', '.join(backend.pipelines)}; or found: and a source",
        is_required=True,
        example=f"due:{sample}",
    )


def refuse_unknown(name: str, doubt: str | None) -> None:
    """Refuse a value that nothing has, where there is a doubt: an empty list would hide a slip."""
    if doubt is not None:
        raise Problem(400, f"{doubt[0].upper()}{doubt[1:]}.", where=f"query parameter {name}")


def no_pipeline() -> Problem:
    """Say that there is no such pipeline."""
    return Problem(404, "No such pipeline.", where="path parameter pipeline", helps="See /api/v1/pipelines.")


def no_item() -> Problem:
    """Say that there is no such item."""
    return Problem(404, "No such item.", where="path parameter id", helps="See /api/v1/items.")


def describe(pipeline: Pipeline, status: StatusView) -> dict[str, Any]:
    """Tell what a pipeline is, and how it is doing."""
    view = status.pipelines.get(pipeline.name)
    return {
        "name": pipeline.name,
        "title": pipeline.title,
        "about": pipeline.about,
        "collections": [each.name for each in pipeline.collections],
        "workflows": {kind: describe_workflow(each) for kind, each in pipeline.workflows.items()},
        "status": plain(view) if view is not None else None,
    }


def describe_workflow(workflow: Workflow) -> dict[str, Any]:
    """Tell what a workflow declares."""
    return {
        "start": workflow.start,
        "states": list(workflow.states),
        "terminal": sorted(workflow.terminal),
        "transitions": [_describe_transition(each) for each in workflow.transitions],
    }


def _describe_transition(transition: Transition) -> dict[str, Any]:
    return {
        "name": transition.name,
        "from": list(transition.sources),
        "to": transition.target,
        "trigger": transition.trigger,
        "lane": transition.lane,
        "processor": name_of(transition.processor) if transition.processor is not None else None,
        "criterion": name_of(transition.criterion) if transition.criterion is not None else None,
    }


def _list_of(name: str, item: Any, **more: Any) -> dict[str, Any]:
    properties = {name: {"type": "array", "items": item}, **more}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _get(
    path: str, handler: Handler, summary: str, shape: Any, *parameters: Parameter, missing: bool = False
) -> Operation:
    problems = (404,) if missing else ()
    return Operation(
        "GET", f"/api/v1{path}", "read", handler, summary, parameters=parameters, answer=shape, problems=problems
    )
