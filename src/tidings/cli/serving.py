"""The HTTP server as one of the loops."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import resource
import socket
from collections.abc import Callable, Coroutine, Iterator
from io import BytesIO
from typing import Any

import uvicorn

from tidings import __version__
from tidings.app import App
from tidings.cli.readiness import Readiness
from tidings.discover.upload import read_lines
from tidings.model.errors import Misconfigured
from tidings.serve.connections import Allowance, guarded
from tidings.serve.parts import Parts
from tidings.serve.server import build
from tidings.store.checks import has_token
from tidings.store.database import wait_for_server

OPEN_BIND = (
    "server.host: {host} is open to others and no token exists; `tidings token create --scope read` first, "
    "or listen on 127.0.0.1"
)

GONE_MS = 60_000
"""How long sent bytes may stay unconfirmed before a client counts as gone."""
OWN_FILES = 128
"""Open files that are not connections: the database's, the log, sockets of the other loops."""


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
    # So do these: a client whose cable was cut is noticed within minutes, not hours.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_MS)
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
            http=guarded(allowance_of(server)),
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


def allowance_of(server: dict[str, Any]) -> Allowance:
    """Return what connections may take, within what the system allows this process; raise its soft limit if need be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = server["connections_max"] + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = wanted if soft == resource.RLIM_INFINITY else min(wanted, soft)
    return Allowance(
        connections_max=max(10, room - OWN_FILES),
        per_client_max=server["connections_per_client"],
        header_seconds=server["header_seconds"],
    )


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
        ready=Readiness(app).problems,
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


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
