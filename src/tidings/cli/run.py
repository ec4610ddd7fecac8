"""`tidings run`: the loops of a role, until a signal."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidings.app import App
from tidings.cli.options import ConfigOption, LogOption, MetricsPortOption, set_up_logs, settings_from, wiring_of
from tidings.cli.output import fail
from tidings.cli.process import run_app, stop_on_signals
from tidings.cli.server import metrics_loop, refuse_open_bind, serve_loop
from tidings.process.loops import Loop, run_loops
from tidings.watch import logs

ROLES = ("all", "discover", "work", "serve")


def run(
    config: ConfigOption = None,
    role: Annotated[str, typer.Option(metavar="|".join(ROLES), help="Which part to run.")] = "all",
    pipeline: Annotated[list[str] | None, typer.Option(help="Only this pipeline; may be repeated.")] = None,
    metrics_port: MetricsPortOption = None,
    log_format: LogOption = "human",
) -> None:
    """Ask sources, process, serve: the real thing. Ctrl-C, SIGTERM or SIGHUP stops it cleanly."""
    if role not in ROLES:
        fail(f"--role {role!r}: use one of {', '.join(ROLES)}")
    settings = settings_from(config)
    if not settings.pipelines:
        fail("no pipeline is on; `tidings init` writes a tidings.toml with the keyless ones on")
    unknown = set(pipeline or []) - set(settings.pipelines)
    if unknown:
        fail(f"--pipeline {', '.join(sorted(unknown))}: not on; on are {', '.join(settings.pipelines)}")
    wiring = wiring_of(config, takes_leases=role != "serve")
    if pipeline:
        chosen = tuple(p for p in wiring.pipelines if p.name in pipeline)
        routes = tuple(r for r in wiring.routes if r.pipeline in pipeline)
        wiring = wiring_of(config, pipelines=chosen, routes=routes, takes_leases=role != "serve")
    set_up_logs(log_format)
    if role in ("all", "serve") or metrics_port is not None:
        refuse_open_bind(wiring.database_url, settings.server.host)

    async def use(app: App) -> None:
        stop = stop_on_signals()
        loops = await loops_for(app, role, settings.server.model_dump())
        if metrics_port is not None:
            loops.append(await metrics_loop(app, settings.server.model_dump(), metrics_port))
        logs.event("started", role=role, pipelines=len(app.pipelines), dashboard=app.address)
        await run_loops(loops, stop)
        logs.event("stopped", role=role)

    run_app(wiring, use, stays=True)


async def loops_for(app: App, role: str, server: dict[str, Any], *, is_demo: bool = False) -> list[Loop]:
    """Return the loops of a role."""
    loops: list[Loop] = [app.hints.run, app.alert_loop(role).run]
    if role in ("all", "discover"):
        loops.append(app.poller.run)
    if role in ("all", "work"):
        loops += [app.worker().run, app.sweeper.run]
        loops += await app.mirror_loops()
    if role in ("all", "serve"):
        loops.append(await serve_loop(app, server, is_demo=is_demo))
        loops += [each.run for each in app.follow_loops()]
    return loops
