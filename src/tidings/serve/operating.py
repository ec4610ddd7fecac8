"""What operators see and do over HTTP: items and their life lines, dead letters, sources, channels, pausing, replay."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from tidings.model.errors import BadInput
from tidings.model.item import STANDINGS
from tidings.model.pipeline import Pipeline
from tidings.model.views import (
    AlertView,
    ChannelView,
    DeadGroup,
    DeliveryView,
    ItemRow,
    ItemView,
    PipelineView,
    Point,
    SourceView,
    StatusView,
)
from tidings.model.workflow import Transition, Workflow, name_of
from tidings.serve.bodies import read_object
from tidings.serve.collections import NULLABLE_STRING
from tidings.serve.filters import read_number, write_cursor
from tidings.serve.operations import CURSOR, LIMIT, Body, Call, Operation, Parameter
from tidings.serve.parts import Parts
from tidings.serve.problems import Problem
from tidings.serve.replies import Reply, answer
from tidings.serve.wire import plain

VIEWS: tuple[type[msgspec.Struct], ...] = (
    AlertView,
    ChannelView,
    DeadGroup,
    DeliveryView,
    ItemRow,
    ItemView,
    PipelineView,
    Point,
    SourceView,
    StatusView,
)
ITEM_ID = Parameter("id", "The item's opaque id.", "integer", "path", minimum=1, maximum=2**63 - 1, example=1)
REASON = Body(
    {"type": "object", "properties": {"reason": {"type": "string", "maxLength": 500}}},
    {"reason": "checked by hand"},
    required=False,
)


class Reason(msgspec.Struct, forbid_unknown_fields=True):
    """Why a person does something."""

    reason: str = ""


class Revival(msgspec.Struct, forbid_unknown_fields=True):
    """Which dead letters to bring back."""

    item: str | None = None
    pipeline: str | None = None
    cause: str | None = None
    all: bool = False


class Replay(msgspec.Struct, forbid_unknown_fields=True):
    """Which items to process again."""

    state: str | None = None
    query: str | None = None
    item: str | None = None
    dry_run: bool = False


class Operating:
    """The operators' half of the API."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._desk = parts.desk
        self._read = parts.executor.read
        self._write = parts.executor.write

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        return [*self._views(), *self._items(), *self._dead_letters(), *self._parts_to_pause()]

    def _views(self) -> list[Operation]:
        page = (LIMIT,)
        series = Parameter("series", "Such as `due:hacker_news` or `settled:hacker_news`.", example="due:hacker_news")
        hours = Parameter("hours", "How far back.", "integer", minimum=1, maximum=720, default=24)
        known = Parameter(
            "pipeline", "The pipeline's name.", place="path", example=next(iter(self._parts.pipelines), "p")
        )
        everything = Parameter("all", "The recent history too.", "boolean", default=False)
        channel = Parameter("channel", "Only this channel.")
        return [
            _get("/api/v1/status", self._status, "Everything at a glance", StatusView),
            _get("/api/v1/pipelines", self._pipelines, "The pipelines", _list_of("pipelines", {"type": "object"})),
            _get("/api/v1/pipelines/{pipeline}", self._pipeline, "One pipeline", {"type": "object"}, (known,), (404,)),
            _get("/api/v1/alerts", self._alerts, "Firing alerts", _list_of("alerts", AlertView), (everything,)),
            _get("/api/v1/sources", self._sources, "Every source and its health", _list_of("sources", SourceView)),
            _get(
                "/api/v1/deliveries",
                self._deliveries,
                "Notices, newest first",
                _list_of("deliveries", DeliveryView),
                (channel, *page),
            ),
            _get(
                "/api/v1/channels", self._channels, "The channels and their limiters", _list_of("channels", ChannelView)
            ),
            _get(
                "/api/v1/history",
                self._history,
                "Low-resolution history of a series",
                _list_of("points", Point),
                (series, hours),
            ),
        ]

    def _items(self) -> list[Operation]:
        name = Parameter("name", "A manual transition the item allows now.", place="path", example="retry_processing")
        filters = (
            Parameter("pipeline", "Only this pipeline."),
            Parameter("kind", "Only this kind."),
            Parameter("key", "Only the item with this key; needs pipeline and kind."),
            Parameter("state", "Only this state."),
            Parameter("standing", "Only this standing.", values=STANDINGS),
        )
        replay = Body(
            {
                "type": "object",
                "properties": {
                    "state": {"type": "string"},
                    "query": {"type": "string"},
                    "item": {"type": "string"},
                    "dry_run": {"type": "boolean"},
                },
            },
            {"state": "fetched", "dry_run": True},
        )
        known = Parameter(
            "pipeline", "The pipeline's name.", place="path", example=next(iter(self._parts.pipelines), "p")
        )
        rows = _list_of("items", ItemRow, next_cursor=NULLABLE_STRING)
        return [
            _get("/api/v1/items", self._list_items, "Items, newest first", rows, (*filters, LIMIT, CURSOR)),
            _get("/api/v1/items/{id}", self._item, "One item, whole: its life line", ItemView, (ITEM_ID,), (404,)),
            _post(
                "/api/v1/items/{id}/transitions/{name}",
                self._transition,
                "Perform a manual transition",
                ItemView,
                (ITEM_ID, name),
                REASON,
                (404, 409),
            ),
            _post(
                "/api/v1/pipelines/{pipeline}/replay",
                self._replay,
                "Process items again from a state",
                _count("replayed"),
                (known,),
                replay,
                (404, 409),
            ),
        ]

    def _dead_letters(self) -> list[Operation]:
        revival = Body(
            {
                "type": "object",
                "properties": {
                    "item": {"type": "string"},
                    "pipeline": {"type": "string"},
                    "cause": {"type": "string"},
                    "all": {"type": "boolean"},
                },
            },
            {"pipeline": "bitcoin_news", "cause": "404"},
            help="One item, those of a pipeline or a cause, or `all`.",
        )
        return [
            _get(
                "/api/v1/dead-letters",
                self._dead,
                "Dead letters grouped by cause",
                _list_of("dead_letters", DeadGroup, total={"type": "integer"}),
            ),
            _post(
                "/api/v1/dead-letters/revive",
                self._revive,
                "Bring dead letters back",
                _count("revived"),
                (),
                revival,
                (404,),
            ),
        ]

    def _parts_to_pause(self) -> list[Operation]:
        source = Parameter("source", "The source's name.", place="path", example="hacker_news.new")
        channel = Parameter("channel", "The channel's name.", place="path", example="discord:news")
        pipeline = Parameter(
            "pipeline", "The pipeline's name.", place="path", example=next(iter(self._parts.pipelines), "p")
        )
        declared = [
            _post("/api/v1/sources/{source}/check", self._check, "Ask a source now", _done(), (source,), None, (404,)),
        ]
        for word, parameter in (("source", source), ("channel", channel), ("pipeline", pipeline)):
            for verb, handler, body in (("pause", self._pause, REASON), ("resume", self._resume, None)):
                summary = f"{verb.capitalize()} a {word}"
                path = f"/api/v1/{word}s/{{{word}}}/{verb}"
                declared.append(_post(path, partial(handler, word), summary, _done(), (parameter,), body, (404,)))
        return declared

    async def _status(self, _call: Call) -> Reply:
        return answer(plain(await self._read(self._desk.status)))

    async def _pipelines(self, _call: Call) -> Reply:
        status = await self._read(self._desk.status)
        return answer({"pipelines": [describe(each, status) for each in self._parts.pipelines.values()]})

    async def _pipeline(self, call: Call) -> Reply:
        pipeline = self._parts.pipelines.get(call["pipeline"])
        if pipeline is None:
            raise Problem(404, "No such pipeline.", where="path parameter pipeline", helps="See /api/v1/pipelines.")
        return answer(describe(pipeline, await self._read(self._desk.status)))

    async def _alerts(self, call: Call) -> Reply:
        return answer({"alerts": plain(await self._read(self._desk.alerts, all_of_them=call["all"]))})

    async def _sources(self, _call: Call) -> Reply:
        return answer({"sources": plain(await self._read(self._desk.sources))})

    async def _deliveries(self, call: Call) -> Reply:
        found = await self._read(self._desk.deliveries, limit=call["limit"], channel=call["channel"])
        return answer({"deliveries": plain(found)})

    async def _channels(self, _call: Call) -> Reply:
        return answer({"channels": plain(await self._read(self._desk.channels))})

    async def _history(self, call: Call) -> Reply:
        if not call["series"]:
            raise Problem(400, "Say which series.", where="query parameter series")
        since_ms = self._parts.clock.now_ms() - call["hours"] * 3_600_000
        return answer({"points": plain(await self._read(self._desk.points, call["series"], since_ms=since_ms))})

    async def _list_items(self, call: Call) -> Reply:
        if call["key"]:
            return answer({"items": await self._named(call), "next_cursor": None})
        rows = await self._read(
            self._desk.items,
            pipeline=call["pipeline"],
            kind=call["kind"],
            state=call["state"],
            standing=call["standing"],
            limit=call["limit"],
            before=read_number(call["cursor"]),
        )
        cursor = write_cursor(rows[-1].id) if len(rows) == call["limit"] else None
        return answer({"items": plain(rows), "next_cursor": cursor})

    async def _named(self, call: Call) -> list[Any]:
        if not call["pipeline"] or not call["kind"]:
            raise Problem(400, "A key needs its pipeline and kind.", where="query parameter key")
        view = await self._read(self._desk.find, call["pipeline"], call["kind"], call["key"])
        return [plain(view.item)] if view is not None else []

    async def _item(self, call: Call) -> Reply:
        return answer(plain(await self._known(call["id"])))

    async def _known(self, item: int) -> ItemView:
        view = await self._read(self._desk.item, item)
        if view is None:
            raise Problem(404, "No such item.", where="path parameter id", helps="See /api/v1/items.")
        return view

    async def _transition(self, call: Call) -> Reply:
        asked = await read_object(call.request, Reason)
        await self._known(call["id"])
        view = await self._do(
            self._desk.transition, call["id"], call["name"], actor=call.caller.name, reason=asked.reason[:500]
        )
        self._parts.wake()
        return answer(plain(view))

    async def _replay(self, call: Call) -> Reply:
        asked = await read_object(call.request, Replay)
        if call["pipeline"] not in self._parts.pipelines:
            raise Problem(404, "No such pipeline.", where="path parameter pipeline", helps="See /api/v1/pipelines.")
        count = await self._do(
            self._desk.replay,
            call["pipeline"],
            state=asked.state,
            query=asked.query,
            actor=call.caller.name,
            dry_run=asked.dry_run,
            item=_id(asked.item),
        )
        self._parts.wake()
        return answer({"replayed": count, "dry_run": asked.dry_run})

    async def _dead(self, _call: Call) -> Reply:
        groups = await self._read(self._desk.dead_letters)
        return answer({"dead_letters": plain(groups), "total": sum(group.count for group in groups)})

    async def _revive(self, call: Call) -> Reply:
        asked = await read_object(call.request, Revival)
        if not (asked.all or asked.item or asked.pipeline or asked.cause):
            raise Problem(400, "Say which: item, pipeline, cause, or all.", where="body")
        count = await self._do(
            self._desk.revive, item=_id(asked.item), pipeline=asked.pipeline, cause=asked.cause, actor=call.caller.name
        )
        self._parts.wake()
        return answer({"revived": count})

    async def _check(self, call: Call) -> Reply:
        await self._do(self._desk.check_now, call["source"], status=404)
        self._parts.wake()
        return answer({"done": True})

    async def _pause(self, word: str, call: Call) -> Reply:
        asked = await read_object(call.request, Reason)
        reason = asked.reason[:500] or f"by {call.caller.name}"
        await self._do(self._desk.pause, f"{word}:{call[word]}", reason=reason, status=404)
        return answer({"done": True})

    async def _resume(self, word: str, call: Call) -> Reply:
        await self._do(self._desk.resume, f"{word}:{call[word]}", status=404)
        self._parts.wake()
        return answer({"done": True})

    async def _do(self, act: Callable[..., Any], *args: Any, status: int = 409, **kwargs: Any) -> Any:
        try:
            return await self._write(act, *args, **kwargs)
        except BadInput as error:
            raise Problem(status, f"{error}") from error


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


def _id(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Problem(400, "This is no item's id.", where="body, item")
    return int(text)


def _list_of(name: str, item: Any, **more: Any) -> dict[str, Any]:
    properties = {name: {"type": "array", "items": item}, **more}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _count(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]}


def _done() -> dict[str, Any]:
    return {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}


def _get(
    path: str,
    handler: Any,
    summary: str,
    shape: Any,
    parameters: tuple[Parameter, ...] = (),
    problems: tuple[int, ...] = (),
) -> Operation:
    return Operation("GET", path, "read", handler, summary, parameters=parameters, answer=shape, problems=problems)


def _post(
    path: str,
    handler: Any,
    summary: str,
    shape: Any,
    parameters: tuple[Parameter, ...],
    body: Body | None,
    problems: tuple[int, ...],
) -> Operation:
    return Operation(
        "POST",
        path,
        "operate",
        handler,
        summary,
        parameters=parameters,
        body=body,
        answer=shape,
        problems=(*problems, 408, 413, 415, 507),
    )
