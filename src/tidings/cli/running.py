"""Commands that run things: run, work, discover, demo."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from tidings.app import App, run_loops
from tidings.cli.output import console, fail, say, show_json, show_table
from tidings.cli.serving import refuse_open_bind, serve_loop
from tidings.cli.shared import (
    ConfigOption,
    JsonOption,
    LogOption,
    run_app,
    set_up_logs,
    settings_from,
    stop_on_signals,
    wiring_of,
)
from tidings.model.views import RunView
from tidings.watch import logs

PANEL = "Run"
ROLES = ("all", "discover", "work", "serve")
Loop = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(rich_help_panel=PANEL)(run)
    app.command(rich_help_panel=PANEL)(work)
    app.command(rich_help_panel=PANEL)(discover)


def run(
    config: ConfigOption = None,
    role: Annotated[str, typer.Option(help="all, discover, work or serve.")] = "all",
    pipeline: Annotated[list[str] | None, typer.Option(help="Only these pipelines.")] = None,
    log_format: LogOption = "human",
) -> None:
    """Run the real thing: ask sources, process, serve. Ctrl-C or SIGTERM stops it cleanly."""
    if role not in ROLES:
        fail(f"--role {role!r}: use one of {', '.join(ROLES)}")
    settings = settings_from(config)
    if not settings.pipelines:
        fail("no pipeline is on; `tidings init` writes a tidings.toml with the keyless ones on")
    unknown = set(pipeline or []) - set(settings.pipelines)
    if unknown:
        fail(f"--pipeline {', '.join(sorted(unknown))}: not on; on are {', '.join(settings.pipelines)}")
    wiring = wiring_of(config)
    if pipeline:
        chosen = tuple(p for p in wiring.pipelines if p.name in pipeline)
        routes = tuple(r for r in wiring.routes if r.pipeline in pipeline)
        wiring = wiring_of(config, pipelines=chosen, routes=routes)
    set_up_logs(log_format)
    if role in ("all", "serve"):
        refuse_open_bind(wiring.database_url, settings.server.host)

    async def use(app: App) -> None:
        stop = stop_on_signals()
        loops = await loops_for(app, role, settings.server.model_dump())
        logs.event("started", role=role, pipelines=len(app.pipelines), dashboard=app.address)
        await run_loops(loops, stop)
        logs.event("stopped", role=role)

    run_app(wiring, use, stays=True)


async def loops_for(app: App, role: str, server: dict[str, Any], *, is_demo: bool = False) -> list[Loop]:
    """Return the loops of a role."""
    loops: list[Loop] = [app.listen]
    if role in ("all", "discover"):
        loops.append(app.poller.run)
    if role in ("all", "work"):
        loops += [app.worker().run, app.sweeper.run, app.alert_loop().run]
    if role in ("all", "serve"):
        loops.append(await serve_loop(app, server, is_demo=is_demo))
    return loops


def work(
    config: ConfigOption = None,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="Drain what is due, then exit.")] = False,
    pipeline: Annotated[list[str] | None, typer.Option(help="Only these pipelines.")] = None,
    lane: Annotated[str | None, typer.Option(help="Only this lane: pure, fetch, ai or notify.")] = None,
    log_format: LogOption = "human",
) -> None:
    """Work: merge, claim, process, settle; with --until-idle for cron, CI and one stage by hand."""
    wiring = wiring_of(config)
    if lane is not None and lane not in wiring.lanes:
        fail(f"--lane {lane!r}: use one of {', '.join(wiring.lanes)}")
    unknown = set(pipeline or []) - {p.name for p in wiring.pipelines}
    if unknown:
        fail(f"--pipeline {', '.join(sorted(unknown))}: not on")
    set_up_logs(log_format)

    async def use(app: App) -> None:
        stop = stop_on_signals()
        worker = app.worker(only_lane=lane, only_pipelines=tuple(pipeline or ()))
        if until_idle:
            await app.sweeper.sweep()
            await worker.until_idle()
        else:
            await run_loops([worker.run, app.sweeper.run, app.listen], stop)

    run_app(wiring, use, stays=True)


def discover(
    pipeline: Annotated[str, typer.Argument(help="The pipeline whose sources are asked.")],
    config: ConfigOption = None,
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    from_id: Annotated[int | None, typer.Option("--from", help="First id of a range to read (Hacker News).")] = None,
    to_id: Annotated[int | None, typer.Option("--to", help="Last id of that range.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask sources once, now; print what was found."""
    wiring = wiring_of(config)
    declared = next((p for p in wiring.pipelines if p.name == pipeline), None)
    if declared is None:
        fail(f"pipeline {pipeline!r} is not on; on are {', '.join(p.name for p in wiring.pipelines) or 'none'}")
    names = [s.name for s in declared.sources if source in (None, s.name, s.name.removeprefix(f"{pipeline}."))]
    if not names:
        fail(f"there is no source {source!r}; known: {', '.join(s.name for s in declared.sources) or 'none'}")
    options = {k: v for k, v in (("from", from_id), ("to", to_id)) if v is not None}
    if len(options) == 1:
        fail("--from and --to go together")
    logs.set_up("human", logging.WARNING)

    async def use(app: App) -> list[RunView]:
        await app.poller.declare()
        runs = []
        with _progress(as_json) as progress:
            for name in names:
                task = progress.add_task(f"asking {name}", total=None)
                watch = asyncio.create_task(_watch(app, name, progress, task, options))
                run = await app.poller.ask(name, force=True, options=options)
                watch.cancel()
                progress.remove_task(task)
                if run is None:
                    raise SystemExit(_busy(name))
                runs.append(run)
        return runs

    runs = run_app(wiring, use)
    if as_json:
        show_json(runs)
    else:
        _show_runs(runs)
    if any(run.error for run in runs):
        raise SystemExit(1)


def _progress(quiet: bool) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[note]}"))
    return Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)


async def _watch(app: App, name: str, progress: Progress, task: Any, options: dict[str, Any]) -> None:
    """Show how far a long reading has come."""
    total = options["to"] - options["from"] + 1 if options else None
    while True:
        await asyncio.sleep(0.5)
        waiting = await app.executor.read(app.store.intake.unmerged, name.partition(".")[0])
        progress.update(task, total=total, completed=waiting, note=f"{waiting} found")


def _busy(name: str) -> str:
    return f"tidings: {name} is paused, or being asked by another process right now"


def _show_runs(runs: list[RunView]) -> None:
    columns = ("source", "found", "new", "changed", "unchanged", "rejected", "trimmed", "pages", "credits", "error")
    show_table(columns, [[getattr(run, name) for name in columns] for run in runs], empty="no source was asked")
    for run in runs:
        if run.note:
            say(f"{run.source}: {run.note}")
