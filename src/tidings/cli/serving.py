"""The HTTP server as one of the loops."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from io import BytesIO
from typing import Any

import uvicorn

from tidings import __version__
from tidings.app import App
from tidings.discover.upload import read_lines
from tidings.model.errors import Misconfigured, StoreUnavailable
from tidings.serve.parts import Parts
from tidings.serve.server import build
from tidings.store.checks import has_token
from tidings.store.database import wait_for_server
from tidings.store.migrate import check_schema

OPEN_BIND = (
    "server.host: {host} is open to others and no token exists; `tidings token create --scope read` first, "
    "or listen on 127.0.0.1"
)


async def serve_loop(
    app: App, server: dict[str, Any], *, is_demo: bool = False
) -> Callable[[asyncio.Event], Coroutine[Any, Any, None]]:
    """Bind at once, so that a refusal comes before anything starts; return the loop that serves."""
    host, port = server["host"], server["port"]
    loopback = is_loopback(host)
    if not loopback and not await app.executor.read(app.store.desk.has_tokens):
        raise Misconfigured(OPEN_BIND.format(host=host))
    application = build(parts_of(app, server, loopback=loopback, is_demo=is_demo))
    try:
        listener = socket.create_server((host, port), reuse_port=False)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise Misconfigured(
            f"cannot listen on {host}:{port}: {why}; set another server.port, such as TIDINGS_SERVER__PORT={port + 1}"
        ) from error
    # Accepted connections inherit this; asyncio sets it only on sockets it opened itself. Without it a kept-alive
    # connection waits 40 ms for every answer.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    app.address = f"http://{host}:{listener.getsockname()[1]}{server['root_path']}"

    async def serve(stop: asyncio.Event) -> None:
        config = uvicorn.Config(
            application,
            log_level="error",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=5,
            root_path=server["root_path"],
        )
        running = uvicorn.Server(config)
        # The command line owns the signals.
        running.capture_signals = contextlib.nullcontext  # type: ignore[assignment,method-assign]
        task = asyncio.create_task(running.serve(sockets=[listener]))
        await asyncio.wait([task, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
        await application.close()
        running.should_exit = True
        await task

    return serve


def refuse_open_bind(database_url: str, host: str) -> None:
    """Refuse, before anything is written, to listen for others while no token exists."""
    if is_loopback(host):
        return
    wait_for_server(database_url)
    if not has_token(database_url):
        raise Misconfigured(OPEN_BIND.format(host=host))


def parts_of(app: App, server: dict[str, Any], *, loopback: bool, is_demo: bool = False) -> Parts:
    """Give the server what it stands on."""
    return Parts(
        pipelines=app.pipelines,
        executor=app.executor,
        shelf=app.store.shelf,
        index=app.store.index,
        links=app.store.links,
        intake=app.store.intake,
        desk=app.store.desk,
        parse_lines=_parse_lines,
        metrics=lambda: _metrics(app),
        ready=lambda: _problems(app),
        wake=app.waker.wake_all,
        observe=app.metrics.observe_request,
        ledger=app.ledger,
        clock=app.clock,
        is_demo=is_demo,
        loopback=loopback,
        hosts=frozenset(server["hosts"]),
        root_path=server["root_path"],
        cors_origins=frozenset(server["cors_origins"]),
        version=__version__,
    )


def _parse_lines(body: bytes) -> Iterator[tuple[int, Any]]:
    return read_lines(BytesIO(body), gzip_allowed=False)


def _metrics(app: App) -> tuple[bytes, str]:
    """Tell what the store knows as of now; a process that only serves has no loop that would note it."""
    app.metrics.observe_status(app.store.desk.status())
    return app.metrics.render()


def _problems(app: App) -> dict[str, str]:
    """Say what keeps us from working; what is known to stand still is not asked, or the question would stand too."""
    try:
        problem = app.database.standstill() or check_schema(app.database)
    except StoreUnavailable as error:
        problem = str(error)
    return {"database": problem} if problem else {}


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
