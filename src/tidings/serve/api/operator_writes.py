"""What operators do over HTTP: manual transitions, replay, reviving, checking, pausing and resuming."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from tidings.model.errors import BadInput
from tidings.model.item_views import ItemView
from tidings.model.vocabulary import unknown_value
from tidings.serve.api.operator_reads import ITEM_ID, no_item, no_pipeline, pipeline_parameter
from tidings.serve.backend import Backend
from tidings.serve.http.operations import Call, Handler, Operation, Parameter, RequestBody
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply, answer
from tidings.serve.http.request_bodies import read_object
from tidings.serve.http.wire import plain

_REASON_LENGTH_MAX = 500
_TEXT = {"type": "string"}


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
    all: bool = False
    dry_run: bool = False


REASON = RequestBody(
    {"type": "object", "properties": {"reason": _TEXT}, "additionalProperties": False},
    {"reason": "checked by hand"},
    required=False,
)


class OperatorWrites:
    """The operators' writes."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._items, self._switches = backend.item_actions, backend.switches

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        pipelines = self._backend.pipelines.values()
        workflows = [workflow for each in pipelines for workflow in each.workflows.values()]
        by_hand = (t.name for workflow in workflows for t in workflow.transitions if t.trigger == "manual")
        sources = (source.name for each in pipelines for source in each.sources)
        name = Parameter(
            "name", "A manual transition the item allows now.", place="path", example=next(by_hand, "retry")
        )
        source = Parameter("source", "The source's name.", place="path", example=next(sources, "p.source"))
        channel = Parameter("channel", "The channel's name.", place="path", example="news")
        pipeline = pipeline_parameter(self._backend)
        transition, done = "/items/{id}/transitions/{name}", _whole({"done": {"type": "boolean"}})
        declared = [
            _post(transition, self._transition, "Perform a manual transition", ItemView, REASON, ITEM_ID, name),
            _post(
                "/pipelines/{pipeline}/replay",
                self._replay,
                "Process items again",
                _whole({"replayed": {"type": "integer"}, "skipped": {"type": "integer"}}),
                _replay_body(workflows[0].start if workflows else "found"),
                pipeline,
            ),
            _post(
                "/dead-letters/revive",
                self._revive,
                "Bring dead letters back",
                _count("revived"),
                _revival_body(pipeline.example),
            ),
            _post("/sources/{source}/check", self._check, "Ask a source now", done, None, source),
        ]
        for word, parameter in (("source", source), ("channel", channel), ("pipeline", pipeline)):
            path = f"/{word}s/{{{word}}}"
            pause, resume = partial(self._pause, word), partial(self._resume, word)
            declared.append(_post(f"{path}/pause", pause, f"Pause a {word}", done, REASON, parameter))
            declared.append(_post(f"{path}/resume", resume, f"Resume a {word}", done, None, parameter))
        return declared

    async def _transition(self, call: Call) -> Reply:
        body = await read_object(call.request, Reason)
        if await self._backend.executor.read(self._backend.item_views.item, call["id"]) is None:
            raise no_item()
        reason = body.reason[:_REASON_LENGTH_MAX]
        await self._do(self._items.transition, call["id"], call["name"], actor=call.caller.name, reason=reason)
        # What the write itself returns may have been read before its commit.
        return answer(plain(await self._backend.executor.read(self._backend.item_views.item, call["id"])))

    async def _replay(self, call: Call) -> Reply:
        body = await read_object(call.request, Replay)
        if call["pipeline"] not in self._backend.pipelines:
            raise no_pipeline()
        if not (body.all or body.dry_run or body.state or body.query or body.item):
            raise Problem(400, "Say which: item, query, state, or all.", where="body")
        done = await self._do(
            self._items.replay,
            call["pipeline"],
            state=body.state,
            query=body.query,
            actor=call.caller.name,
            dry_run=body.dry_run,
            item=_id(body.item),
        )
        return answer({"replayed": done.items, "skipped": done.skipped, "dry_run": body.dry_run})

    async def _revive(self, call: Call) -> Reply:
        body = await read_object(call.request, Revival)
        if not (body.all or body.item or body.pipeline or body.cause):
            raise Problem(400, "Say which: item, pipeline, cause, or all.", where="body")
        count = await self._do(
            self._items.revive, item=_id(body.item), pipeline=body.pipeline, cause=body.cause, actor=call.caller.name
        )
        if not count and (doubt := unknown_value("pipeline", body.pipeline, self._backend.pipelines)):
            raise Problem(400, f"{doubt[0].upper()}{doubt[1:]}.", where="body, pipeline")
        return answer({"revived": count})

    async def _check(self, call: Call) -> Reply:
        await self._do(self._switches.check_now, call["source"], status=404)
        return answer({"done": True})

    async def _pause(self, word: str, call: Call) -> Reply:
        body = await read_object(call.request, Reason)
        reason = body.reason[:_REASON_LENGTH_MAX] or f"by {call.caller.name}"
        await self._do(self._switches.pause, f"{word}:{call[word]}", reason=reason, status=404)
        return answer({"done": True})

    async def _resume(self, word: str, call: Call) -> Reply:
        await self._do(self._switches.resume, f"{word}:{call[word]}", status=404)
        return answer({"done": True})

    async def _do(self, act: Callable[..., Any], *args: Any, status: int = 409, **kwargs: Any) -> Any:
        """Act, wake the workers, and tell the caller what was not possible."""
        try:
            done = await self._backend.executor.write(act, *args, **kwargs)
        except BadInput as error:
            raise Problem(status, f"{error}") from error
        self._backend.wake()
        return done


def _id(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Problem(400, "This is no item's id.", where="body, item")
    return int(text)


def _revival_body(pipeline: str) -> RequestBody:
    return RequestBody(
        {
            "type": "object",
            "properties": {"item": _TEXT, "pipeline": _TEXT, "cause": _TEXT, "all": {"type": "boolean"}},
            "additionalProperties": False,
            "minProperties": 1,
        },
        {"pipeline": pipeline, "cause": "404"},
        help="One item, those of a pipeline or a cause, or `all`.",
    )


def _replay_body(state: str) -> RequestBody:
    return RequestBody(
        {
            "type": "object",
            "properties": {
                "state": _TEXT,
                "query": _TEXT,
                "item": _TEXT,
                "all": {"type": "boolean"},
                "dry_run": {"type": "boolean"},
            },
            "additionalProperties": False,
            "minProperties": 1,
        },
        {"state": state, "dry_run": True},
        help="One item, those that a query finds, those that came past a state, or `all`; `dry_run` only counts.",
    )


def _whole(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _count(name: str) -> dict[str, Any]:
    return _whole({name: {"type": "integer"}})


def _post(
    path: str, handler: Handler, summary: str, shape: Any, body: RequestBody | None, *parameters: Parameter
) -> Operation:
    return Operation(
        "POST",
        f"/api/v1{path}",
        "operate",
        handler,
        summary,
        parameters=parameters,
        body=body,
        answer=shape,
        problems=(404, 408, 409, 413, 415, 507),
    )
