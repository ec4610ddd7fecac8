"""`tidings run`: the loops of a role, until a signal; a changed configuration is taken over without an end."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.app import App
from tidings.cli.options import ConfigOption, LogOption, MetricsPortOption, set_up_logs
from tidings.cli.output import end, fail
from tidings.cli.plan import Plan, Signals, run_reloading
from tidings.cli.server import metrics_loop, refuse_open_bind, serve_loop
from tidings.config import load
from tidings.model.errors import Misconfigured, StoreUnavailable, TidingsError
from tidings.process.loops import Loop, run_loops
from tidings.watch import logs
from tidings.wiring import replica_place, wiring_from

ROLES = ("all", "discover", "work", "serve")
LOOK_SECONDS = 1.0


def run(
    config: ConfigOption = None,
    role: Annotated[str, typer.Option(metavar="|".join(ROLES), help="Which part to run.")] = "all",
    pipeline: Annotated[list[str] | None, typer.Option(help="Only this pipeline; may be repeated.")] = None,
    metrics_port: MetricsPortOption = None,
    replicate: Annotated[
        str,
        typer.Option(metavar="URL", help="Keep a copy of the SQLite file at this place: file://, s3:// or sftp://."),
    ] = "",
    log_format: LogOption = "human",
) -> None:
    """Ask sources, process, serve: the real thing. Ctrl-C or SIGTERM stops it cleanly, SIGHUP reads the file again."""
    if role not in ROLES:
        fail(f"--role {role!r}: use one of {', '.join(ROLES)}")
    chosen = tuple(pipeline or ())
    try:
        first = planned(config, role, chosen, replicate)
        set_up_logs(log_format)
        if role in ("all", "serve") or metrics_port is not None:
            refuse_open_bind(first.wiring.database_url, first.settings.server.host)
    except TidingsError as error:
        end(error)

    async def use(app: App, plan: Plan, signals: Signals) -> None:
        server = plan.settings.server.model_dump()
        loops = await loops_for(app, role, server)
        if metrics_port is not None:
            loops.append(await metrics_loop(app, server, metrics_port))
        loops.append(_reload_loop(app, signals))
        signals.has_started()
        logs.event("started", role=role, pipelines=len(app.pipelines), dashboard=app.address)
        await run_loops(loops, signals.ending)
        if signals.following is None:
            logs.event("stopped", role=role)

    run_reloading(first, lambda: planned(config, role, chosen, replicate), use)


def planned(config: Path | None, role: str, pipelines: tuple[str, ...], replicate: str = "") -> Plan:
    """Read and check the configuration, all of it; raise Misconfigured where something is wrong."""
    settings = load(config)
    if not settings.pipelines:
        raise Misconfigured("no pipeline is on; `tidings init` writes a tidings.toml with the keyless ones on")
    unknown = set(pipelines) - set(settings.pipelines)
    if unknown:
        on = ", ".join(settings.pipelines)
        raise Misconfigured(f"--pipeline {', '.join(sorted(unknown))}: not on; on are {on}")
    wiring = wiring_from(settings, takes_leases=role != "serve")
    if replicate:
        wiring = dataclasses.replace(wiring, replica=replica_place(settings, replicate))
    if pipelines:
        kept = tuple(p for p in wiring.pipelines if p.name in pipelines)
        routes = tuple(r for r in wiring.routes if r.pipeline in pipelines)
        wiring = dataclasses.replace(wiring, pipelines=kept, routes=routes)
    return Plan(settings, wiring)


def _reload_loop(app: App, signals: Signals) -> Loop:
    """Make the loop that hears `tidings reload`."""

    async def listen(stop: asyncio.Event) -> None:
        heard: str | None = None
        is_first = True
        while not stop.is_set():
            try:
                asked = await app.executor.read(app.store.reloads.asked)
                if not is_first and asked != heard:
                    signals.reload()
                heard, is_first = asked, False
            except StoreUnavailable:
                pass  # The other loops report it.
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await stop.wait()
            except TimeoutError:
                pass

    return listen


async def loops_for(app: App, role: str, server: dict[str, Any], *, is_demo: bool = False) -> list[Loop]:
    """Return the loops of a role."""
    loops: list[Loop] = [app.hints.run, app.alert_loop(role).run, *app.copy_loops()]
    if role in ("all", "discover"):
        loops.append(app.poller.run)
    if role in ("all", "work"):
        loops += [app.worker().run, app.sweeper.run]
        loops += await app.mirror_loops()
    if role in ("all", "serve"):
        loops.append(await serve_loop(app, server, is_demo=is_demo))
        loops += [each.run for each in app.follow_loops()]
    return loops
