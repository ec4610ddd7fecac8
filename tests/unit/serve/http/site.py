"""A small site behind our HTTP server, on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from tidings.serve.http.connections import Allowance, guarded

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
WAIT_SECONDS = 30
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Application:
    """Answers at once, but for `/hold`, which waits to be let go, and `/large`, which says much."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.held = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b"x" * (64 << 20) if scope["path"] == "/large" else b"hello"
        if scope["path"] == "/hold":
            self.held += 1
            await self.let_go.wait()
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Site:
    def __init__(self, port: int, application: Application) -> None:
        self.port = port
        self.application = application
        self._held = contextlib.AsyncExitStack()

    async def connect(self, *sent: bytes) -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._held.callback(writer.close)
        for data in sent:
            writer.write(data)
        return reader, writer

    async def status(self, sent: bytes = REQUEST) -> int:
        reader, _writer = await self.connect(sent)
        return await status_of(reader)

    async def close(self) -> None:
        await self._held.aclose()


async def status_of(reader: asyncio.StreamReader) -> int:
    async with asyncio.timeout(WAIT_SECONDS):
        return int((await reader.readline()).split()[1])


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Return what still came until the connection was closed."""
    async with asyncio.timeout(WAIT_SECONDS):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


@asynccontextmanager
async def a_site(asgi: Any = None, **limits: Any) -> AsyncIterator[Site]:
    """Serve an application on a port of its own."""
    application = Application()
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        asgi or application, http=guarded(Allowance(**limits)), log_level="error", lifespan="off", ws="none",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment,method-assign]
    task = asyncio.create_task(server.serve(sockets=[listener]))
    site = Site(listener.getsockname()[1], application)
    try:
        yield site
    finally:
        application.let_go.set()
        await site.close()
        server.should_exit = server.force_exit = True
        await task
        listener.close()
