"""Serve a stand-in on loopback, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import defaultdict, deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send


class StandIn:
    """An ASGI application on a loopback port of its own: `async with StandIn(app) as server: server.url`."""

    def __init__(self, app: ASGIApp, *, port: int = 0) -> None:
        self._app = app
        # The protocol is named, or asyncio would not switch off delayed sending: 40 ms an answer.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> StandIn:
        config = uvicorn.Config(
            self._app, log_level="error", lifespan="off", access_log=False, ws="none", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        # The process that hosts a stand-in owns the signals.
        self._server.capture_signals = contextlib.nullcontext  # type: ignore[assignment,method-assign]
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                self._task.result()
            await asyncio.sleep(0.005)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._task is not None
        self._server.should_exit = True
        self._server.force_exit = True
        await self._task
        self._socket.close()


Fault = Callable[[Request], Response | None] | Response
"""An answer given instead of the real one; a callable may return None to let the real one through."""


class Faults:
    """Scripted misbehavior for a stand-in: the next requests to a path get these answers, then all is well again."""

    def __init__(self) -> None:
        self._next: dict[str, deque[Fault]] = defaultdict(deque)
        self.requests: list[tuple[str, str]] = []
        """Every request seen, as (method, path with query)."""

    def script(self, path_prefix: str, *faults: Fault) -> None:
        """Queue answers for the next requests whose path starts so."""
        self._next[path_prefix].extend(faults)

    def clear(self) -> None:
        """Forget what is queued."""
        self._next.clear()

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Put the faults in front of an application."""

        async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            request = Request(scope, receive)
            query = f"?{request.url.query}" if request.url.query else ""
            self.requests.append((request.method, request.url.path + query))
            fault = self._take(request)
            await (fault if fault is not None else app)(scope, receive, send)

        return wrapped

    def _take(self, request: Request) -> Any:
        for prefix, queued in self._next.items():
            if queued and request.url.path.startswith(prefix):
                fault = queued.popleft()
                return fault if isinstance(fault, Response) else fault(request)
        return None
