"""Commands that run things: run, work, discover, demo."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from tidings.app import App, run_loops
from tidings.cli.help import Command, PipelineArgument
from tidings.cli.output import fail, say, show_json, show_table
from tidings.cli.progress import Meter
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
from tidings.discover.poller import PAGES_MAX
from tidings.discover.ranged import Ranged
from tidings.model.pipeline import Page, Pipeline, Source
from tidings.model.views import RunView
from tidings.watch import logs

PANEL = "Run"
ROLES = ("all", "discover", "work", "serve")
Loop = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(rich_help_panel=PANEL, cls=Command)(run)
    app.command(rich_help_panel=PANEL, cls=Command)(work)
    app.command(rich_help_panel=PANEL, cls=Command)(discover)


def run(
    config: ConfigOption = None,
    role: Annotated[str, typer.Option(metavar="|".join(ROLES), help="Which part to run.")] = "all",
    pipeline: Annotated[list[str] | None, typer.Option(help="Only this pipeline; may be repeated.")] = None,
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
    pipeline: Annotated[list[str] | None, typer.Option(help="Only this pipeline; may be repeated.")] = None,
    lane: Annotated[str | None, typer.Option(metavar="pure|fetch|ai|notify", help="Only this lane.")] = None,
    log_format: LogOption = "human",
) -> None:
    """Process what is due. With --until-idle for cron, CI and one stage by hand."""
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
            await worker.until_idle(stop=stop)
        else:
            await run_loops([worker.run, app.sweeper.run, app.listen], stop)

    run_app(wiring, use, stays=True)


def discover(
    pipeline: Annotated[str, PipelineArgument],
    config: ConfigOption = None,
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    from_id: Annotated[
        int | None, typer.Option("--from", metavar="ID", help="First id of a range to read (Hacker News).")
    ] = None,
    to_id: Annotated[int | None, typer.Option("--to", metavar="ID", help="Last id of that range.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a pipeline's sources once, now. Prints what was found."""
    wiring = wiring_of(config)
    declared = next((p for p in wiring.pipelines if p.name == pipeline), None)
    if declared is None:
        fail(f"pipeline {pipeline!r} is not on; on are {', '.join(p.name for p in wiring.pipelines) or 'none'}")
    options = _range(from_id, to_id)
    sources = _sources(declared, source, options)
    logs.set_up("human", logging.WARNING)

    async def use(app: App) -> list[RunView]:
        await app.poller.declare()
        return [run for each in sources for run in await _ask(app, each, options)]

    try:
        runs = run_app(wiring, use)
    except KeyboardInterrupt:
        if options:
            sys.stderr.write("tidings: stopped; the same command goes on from there\n")
        raise
    if as_json:
        show_json(runs)
    else:
        _show_runs(runs)
    if any(run.error for run in runs):
        raise SystemExit(1)


def _range(first: int | None, last: int | None) -> dict[str, int]:
    if first is None and last is None:
        return {}
    if first is None or last is None:
        fail("--from and --to go together")
    if not 1 <= first <= last:
        fail(f"--from {first} --to {last}: a range goes from an id of at least 1 up to one that is not lower")
    return {"from": first, "to": last}


def _sources(pipeline: Pipeline, name: str | None, options: dict[str, int]) -> list[Source]:
    """Return those to ask; a range is asked only of sources that read one."""
    known = pipeline.sources
    named = [s for s in known if name in (None, s.name, s.name.removeprefix(f"{pipeline.name}."))]
    if not named:
        fail(f"there is no source {name!r}; known: {', '.join(s.name for s in known) or 'none'}")
    able = [s for s in named if not options or isinstance(s, Ranged)]
    if not able:
        fail(f"--from and --to: {', '.join(s.name for s in named)} cannot read a range of ids")
    return able


async def _ask(app: App, source: Source, options: dict[str, int]) -> list[RunView]:
    """Ask one source; a range longer than one run may be takes several."""
    runs: list[RunView] = []
    found, place = 0, (0, 0)
    with Meter(f"asking {source.name}") as meter:

        def show(page: Page) -> None:
            nonlocal found, place
            found += len(page.findings)
            if options and isinstance(source, Ranged):
                place = source.progress(page.cursor) or (place[1], place[1])
            meter.show(f"{found:,} found", *place)

        while not runs or (options and runs[-1].pages >= PAGES_MAX and runs[-1].error is None):
            run = await app.poller.ask(source.name, force=True, options=options, on_page=show)
            if run is None:
                raise SystemExit(f"tidings: {await app.executor.read(_why_not, app, source.name)}")
            runs.append(run)
    return runs


def _why_not(app: App, name: str) -> str:
    """Say why a source cannot be asked now: it is paused, or another process asks it."""
    pipeline = next(p.name for p in app.pipelines.values() for s in p.sources if s.name == name)
    paused = app.store.ledgers.pauses()
    for kind, part in (("source", name), ("pipeline", pipeline)):
        if (reason := paused.get(f"{kind}:{part}")) is not None:
            return f"the {kind} {part} is paused ({reason}); `tidings resume --{kind} {part}` lets it go on"
    holding = app.store.schedules.holding(name)
    if holding is None:
        return f"{name} was being asked by another process until just now; try again"
    since = "" if holding.since is None else f" since {_clock(holding.since)}"
    return (
        f"{name} is being asked by another process{since}; its turn lasts until {_clock(holding.until)} "
        "and is renewed while that process lives"
    )


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S UTC")


def _show_runs(runs: list[RunView]) -> None:
    columns = ("source", "found", "new", "changed", "unchanged", "rejected", "trimmed", "pages", "credits", "error")
    show_table(columns, [[getattr(run, name) for name in columns] for run in runs], empty="no source was asked")
    for run in runs:
        if run.note:
            say(f"{run.source}: {run.note}")
