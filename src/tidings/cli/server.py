"""The HTTP server as one of the loops."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import resource
import socket
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import typer
import uvicorn

from tidings.app import App
from tidings.backends import backend_of, health_backend_of
from tidings.model.errors import Misconfigured
from tidings.serve.application import build
from tidings.serve.http.connections import Allowance, guarded
from tidings.serve.http.server import Application
from tidings.serve.invitation import INVITED_SECONDS, Invitation
from tidings.serve.read_only import build_health
from tidings.store.db.database import wait_for_server
from tidings.store.upkeep.preflight import has_token

OPEN_BIND = (
    "server.host: {host} is open to others and no token exists; `tidings token create --scope read` first, "
    "or listen on 127.0.0.1"
)

INVITED = """
Dashboard: {address}
Sign this browser in (once, within {minutes} minutes): {address}/login?key={key}
"""

GONE_MS = 60_000
"""How long sent bytes may stay unconfirmed before a client counts as gone."""
OWN_FILES = 128
"""Open files that are not connections: the database's, the log, sockets of the other loops."""


async def serve_loop(
    app: App, server: dict[str, Any], *, is_demo: bool = False
) -> Callable[[asyncio.Event], Coroutine[Any, Any, None]]:
    """Bind at once, so that a refusal comes before anything starts; return the loop that serves."""
    host = server["host"]
    loopback = is_loopback(host)
    if not loopback and not await app.executor.read(app.store.tokens.are_there):
        raise Misconfigured(OPEN_BIND.format(host=host))
    # Standard output of a service goes to a log, where others may read it: only a terminal is shown the link.
    invitation = Invitation() if loopback and not is_demo and sys.stdout.isatty() else None
    app.clock.now_ms()  # measured here: a page that asked first could wait for a database that is away
    application = build(backend_of(app, server, loopback=loopback, is_demo=is_demo, invitation=invitation))
    app.address, serve = listen(application, server)
    if invitation is not None:
        typer.echo(INVITED.format(address=app.address, key=invitation.key, minutes=INVITED_SECONDS // 60))
    return serve


async def metrics_loop(
    app: App, server: dict[str, Any], port: int
) -> Callable[[asyncio.Event], Coroutine[Any, Any, None]]:
    """Bind at once; return the loop that serves `/metrics`, `/healthz` and `/readyz` of this process on a port."""
    loopback = is_loopback(server["host"])
    if not loopback and not await app.executor.read(app.store.tokens.are_there):
        raise Misconfigured(OPEN_BIND.format(host=server["host"]))
    backend = health_backend_of(app, server, loopback=loopback)
    _, serve = listen(build_health(backend), server | {"port": port, "root_path": ""})
    return serve


def listen(
    application: Application, server: dict[str, Any]
) -> tuple[str, Callable[[asyncio.Event], Coroutine[Any, Any, None]]]:
    """Bind at once; return the address and the loop that serves."""
    host, port = server["host"], server["port"]
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
    address = f"http://{host}:{listener.getsockname()[1]}{server['root_path']}"

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

    return address, serve


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


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
