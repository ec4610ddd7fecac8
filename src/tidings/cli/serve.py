"""`tidings serve`: the read-only API over a mirror, with no database anywhere."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidings.cli.options import ConfigOption, LogOption, set_up_logs, settings_from
from tidings.cli.output import end
from tidings.cli.process import run_fast, stop_on_signals
from tidings.cli.server import is_loopback, listen
from tidings.config import Settings
from tidings.follow.mirrors.addresses import TargetAddress, open_target
from tidings.mirror_reader import ThreadExecutor, mirrored_pipelines, read_backend
from tidings.model.errors import Misconfigured, TidingsError
from tidings.process.loops import run_loops
from tidings.serve.read_only import build_reader
from tidings.watch import logs

OPEN = (
    "server.host: {host} is open to others; set TIDINGS_READ_TOKEN to a long random text that readers must send, "
    "or say --public"
)


def serve(
    source: Annotated[
        str,
        typer.Option("--from", metavar="URL", envvar="TIDINGS_READ_FROM", help="redis://… or file:///…: the mirror."),
    ],
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on, instead of server.host.")] = None,
    port: Annotated[int | None, typer.Option(help="The port, instead of server.port.", min=0, max=65535)] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="TIDINGS_READ_TOKEN", hidden=True, help="What readers must send."),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Let everyone read, without a token.")] = False,
    log_format: LogOption = "human",
) -> None:
    """Serve the read-only API from a mirror.

    Collections, cards, counts, feeds and health; no database is opened.
    """
    settings = settings_from(config)
    given = {"host": host, "port": port}
    server = settings.server.model_dump() | {name: value for name, value in given.items() if value is not None}
    set_up_logs(log_format)
    logs.hide(token)
    try:
        if not is_loopback(server["host"]) and not (token or public):
            raise Misconfigured(OPEN.format(host=server["host"]))
        run_fast(_serve(source, settings, server, token=token, is_public=public))
    except TidingsError as error:
        end(error)


async def _serve(
    source: str, settings: Settings, server: dict[str, Any], *, token: str | None, is_public: bool
) -> None:
    target, executor = open_target(TargetAddress(source)), ThreadExecutor()
    try:
        pipelines = await mirrored_pipelines(target, settings)
        backend = read_backend(
            target,
            pipelines,
            executor,
            token=token,
            loopback=is_loopback(server["host"]),
            hosts=frozenset(server["hosts"]),
            root_path=server["root_path"],
            cors_origins=frozenset(server["cors_origins"]),
        )
        address, loop = listen(build_reader(backend, is_public=is_public), server)
        logs.event("started", role="serve", pipelines=len(pipelines), address=address, mirror=target.place)
        await run_loops([loop], stop_on_signals())
        logs.event("stopped", role="serve")
    finally:
        executor.close()
        await target.close()
