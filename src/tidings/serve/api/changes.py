"""The stream of changes for programs: every card that was put or withdrawn, in order, as pages or live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from tidings.model.changes import Change, ChangePage, CursorGone
from tidings.model.clock import rfc3339
from tidings.serve.backend import Backend
from tidings.serve.http.operations import LIMIT, Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply, answer
from tidings.serve.http.streams import HEARTBEAT_SECONDS, Streaming

LOOK_SECONDS = 0.25
_BATCH = 200
_AFTER = Parameter("after", "The cursor of the last change seen; without it the stream begins with the oldest card.")
_CHANGE = {
    "type": "object",
    "required": ["cursor", "pipeline", "collection", "id", "revision", "at", "card"],
    "properties": {
        "cursor": {"type": "string"},
        "pipeline": {"type": "string"},
        "collection": {"type": "string"},
        "id": {"type": "string"},
        "revision": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "card": {"type": ["object", "null"], "description": "As the collection shows it; null: it was withdrawn."},
    },
}


class ChangeRoutes:
    """What followers read, for clients of their own: who was away for a day misses nothing."""

    def __init__(self, backend: Backend, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self._backend = backend
        self._heartbeat_seconds = heartbeat_seconds
        self._listeners = 0
        self._is_closed = False

    def operations(self) -> list[Operation]:
        """Declare the route."""
        names = tuple(self._backend.pipelines)
        return [
            Operation(
                "GET",
                "/api/v1/changes",
                "read",
                self._changes,
                "Every card that was put or withdrawn, in order",
                help="Ask again with `next_cursor` as `after`. With `Accept: text/event-stream` the stream stays open; "
                "the id of each event is its cursor, so a client that comes back with `Last-Event-ID` misses nothing. "
                "A cursor that is too old, or of another database, is answered with 410: start again without one.",
                tag="operations",
                parameters=(
                    Parameter(
                        "pipeline",
                        "Of which pipeline.",
                        values=names,
                        is_required=True,
                        example=next(iter(names), None),
                    ),
                    _AFTER,
                    LIMIT,
                    Parameter("Last-Event-ID", "The same as `after`, for event streams.", place="header"),
                ),
                answer={
                    "type": "object",
                    "required": ["changes", "next_cursor", "has_more"],
                    "properties": {
                        "changes": {"type": "array", "items": _CHANGE},
                        "next_cursor": {"type": "string"},
                        "has_more": {"type": "boolean"},
                    },
                },
                problems=(410,),
            )
        ]

    async def close(self) -> None:
        """End every stream, so that the server can stop."""
        self._is_closed = True

    async def _changes(self, call: Call) -> Reply | Streaming:
        pipeline = call["pipeline"]
        headers = call.request.headers
        if "text/event-stream" in headers.get("accept", ""):
            if self._listeners >= self._backend.rates.streams or self._is_closed:
                raise Problem(503, "Too many live streams are open.", headers={"Retry-After": "10"})
            after = call["Last-Event-ID"] or call["after"]
            return Streaming(self._lines(pipeline, await self._page(pipeline, after, _BATCH)))
        page = await self._page(pipeline, call["after"], call["limit"])
        values = {"changes": list(_values(page)), "next_cursor": page.position, "has_more": page.is_full}
        return answer(values)

    async def _page(self, pipeline: str, after: str | None, limit: int) -> ChangePage:
        try:
            return await self._backend.executor.read(self._backend.changes.changes, pipeline, after, limit)
        except CursorGone as error:
            raise Problem(410, "This cursor is too old, or of another database.", helps=str(error)) from None

    async def _lines(self, pipeline: str, page: ChangePage) -> AsyncIterator[bytes]:
        self._listeners += 1
        silent_since = asyncio.get_running_loop().time()
        try:
            yield b"retry: 3000\n\n"
            while not self._is_closed:
                lines = b"".join(_lines_of(page))
                if lines:
                    yield lines
                if not page.is_full:
                    await asyncio.sleep(LOOK_SECONDS)
                now = asyncio.get_running_loop().time()
                if lines:
                    silent_since = now
                elif now - silent_since >= self._heartbeat_seconds:
                    silent_since = now
                    yield b": still here\n\n"
                try:
                    page = await self._page(pipeline, page.position, _BATCH)
                except Problem:
                    return  # the client comes back with its last id, and is told what is wrong
        finally:
            self._listeners -= 1


def _values(page: ChangePage) -> Iterator[dict[str, Any]]:
    for change in page.changes:
        if change.collection:
            yield _value(page, change)


def _value(page: ChangePage, change: Change) -> dict[str, Any]:
    return {
        "cursor": page.cursor_of(change),
        "pipeline": change.pipeline,
        "collection": change.collection,
        "id": change.key.partition(":")[2],
        "revision": change.revision,
        "at": rfc3339(change.written_at),
        "card": None if change.value is None else msgspec.Raw(change.value),
    }


def _lines_of(page: ChangePage) -> Iterator[bytes]:
    for value in _values(page):
        yield b"id: %s\nevent: change\ndata: %s\n\n" % (value["cursor"].encode(), msgspec.json.encode(value))
