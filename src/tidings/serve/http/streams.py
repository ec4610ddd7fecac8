"""The live stream: server-sent events, read once for all clients, resumable by `Last-Event-ID`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

import msgspec
from starlette.types import Receive, Scope, Send

from tidings.model.errors import TidingsError
from tidings.model.item_views import Event
from tidings.serve.backend import Backend
from tidings.serve.http.operations import Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.wire import plain

POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
_BATCH = 200
_WAITING_MAX = 1_000
"""How far a client may fall behind before it is disconnected; it comes back with its last id."""


class LiveStream(Protocol):
    """Answers that stay open until they are told to end."""

    async def close(self) -> None:
        """End every open answer, so that the server can stop."""
        ...


class Stream:
    """Reads what happened, once for all, while there are listeners, and hands it to every one of them."""

    def __init__(
        self, backend: Backend, poll_seconds: float = POLL_SECONDS, heartbeat_seconds: float = HEARTBEAT_SECONDS
    ) -> None:
        self._backend = backend
        self._poll_seconds = poll_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._listeners: set[asyncio.Queue[Event | None]] = set()
        self._asking: asyncio.Task[None] | None = None
        self._last = -1
        self._is_closed = False

    def operations(self) -> list[Operation]:
        """Declare the route."""
        return [
            Operation(
                "GET",
                "/api/v1/events",
                "read",
                self._events,
                "What happens, live",
                help="Server-sent events. Each has an id; a client that comes back with `Last-Event-ID` misses "
                "nothing. A comment line is sent every 15 seconds.",
                parameters=(
                    Parameter("Last-Event-ID", "The id of the last event seen.", place="header"),
                    Parameter("pipeline", "Only this pipeline."),
                ),
                answer={"type": "string"},
                media_type="text/event-stream",
            )
        ]

    async def close(self) -> None:
        """End every stream, so that the server can stop."""
        self._is_closed = True
        for queue in list(self._listeners):
            _put(queue, None)
        if self._asking is not None:
            self._asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._asking

    async def _events(self, call: Call) -> Streaming:
        if call["pipeline"] is not None and call["pipeline"] not in self._backend.pipelines:
            known = ", ".join(self._backend.pipelines)
            raise Problem(400, f"No pipeline has this name; there are {known}.", where="query parameter pipeline")
        if len(self._listeners) >= self._backend.rates.streams or self._is_closed:
            raise Problem(
                503,
                "Too many live streams are open.",
                helps="Close one, or read /api/v1/status instead.",
                headers={"Retry-After": "10"},
            )
        seen = call.request.headers.get("last-event-id", "")
        after = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 19 else None
        return Streaming(self._lines(after, call["pipeline"]))

    async def _lines(self, after: int | None, pipeline: str | None) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue(_WAITING_MAX)
        self._listeners.add(queue)
        try:
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._ask())
            yield b"retry: 3000\n\n"
            last = -1
            if after is not None:
                async for event in self._missed(after):
                    last = event.id
                    if pipeline in (None, event.pipeline):
                        yield line(event)
            while True:
                try:
                    async with asyncio.timeout(self._heartbeat_seconds):
                        arrived = await queue.get()
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if arrived is None:
                    return
                if arrived.id > last and pipeline in (None, arrived.pipeline):
                    yield line(arrived)
        finally:
            self._listeners.discard(queue)

    async def _missed(self, after: int) -> AsyncIterator[Event]:
        while True:
            events = await self._backend.executor.read(self._backend.item_views.events, after=after, limit=_BATCH)
            for event in events:
                yield event
                after = event.id
            if len(events) < _BATCH:
                return

    async def _ask(self) -> None:
        """Poll while anybody listens. A store that does not answer is asked again, no faster."""
        read, events_after = self._backend.executor.read, self._backend.item_views.events
        self._last = -1
        while self._listeners:
            try:
                events = await read(events_after, after=self._last, limit=_BATCH)
            except TidingsError:
                events = []
            is_first = self._last < 0
            if events:
                self._last = max(event.id for event in events)
            elif is_first:
                self._last = 0
            for event in () if is_first else events:
                self._tell(event)
            if len(events) < _BATCH:
                await asyncio.sleep(self._poll_seconds)

    def _tell(self, event: Event) -> None:
        for queue in list(self._listeners):
            if not _put(queue, event):
                # Too far behind: drop what waits and end it. The browser returns with its last id.
                while not queue.empty():
                    queue.get_nowait()
                _put(queue, None)
                self._listeners.discard(queue)


def _put(queue: asyncio.Queue[Event | None], event: Event | None) -> bool:
    try:
        queue.put_nowait(event)
    except asyncio.QueueFull:
        return False
    return True


def line(event: Event) -> bytes:
    """Write one event the way browsers read it."""
    return b"id: %d\nevent: item\ndata: %s\n\n" % (event.id, msgspec.json.encode(plain(event)))


class Streaming:
    """A response without an end; it stops when the client goes."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send, as an ASGI application."""
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await _close(self._lines)

    async def _send(self, send: Send) -> None:
        async for lines in self._lines:
            await send({"type": "http.response.body", "body": lines, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _close(lines: Any) -> None:
    await lines.aclose()
