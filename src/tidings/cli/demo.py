"""`tidings demo`: the real system against the sample world."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.app import App, run_loops
from tidings.cli.output import fail, say, show_json, show_table
from tidings.cli.running import loops_for
from tidings.cli.shared import JsonOption, stop_on_signals
from tidings.config import Server, check
from tidings.model.errors import TidingsError
from tidings.net.client import Limits
from tidings.sample.world import World
from tidings.watch import logs
from tidings.wiring import Wiring, wiring_from

ONCE_SECONDS = 45.0
"""How long a retry or a rate limit is waited for before `--once` calls the rest finished."""
PAGE_SECONDS = 1.5
"""The sample page that hangs should not hold up a newcomer for long."""


def add_to(app: typer.Typer) -> None:
    """Add this command."""
    app.command(rich_help_panel="Run")(demo)


def demo(
    port: Annotated[int, typer.Option(help="Where the dashboard listens.", min=0, max=65535)] = 8000,
    once: Annotated[bool, typer.Option("--once", help="Process everything, print a report, exit.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep the database in this folder.", show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """Run everything on the sample world: no keys, no network, nothing on disk afterwards."""
    logs.set_up("human", logging.ERROR)
    with ExitStack() as held:
        if keep is None:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="tidings-demo-")))
        else:
            keep.mkdir(parents=True, exist_ok=True)
            folder = keep
        try:
            report = asyncio.run(_run(folder / "tidings.db", port, once))
        except TidingsError as error:
            fail(str(error), 1)
    if once:
        _show(report, as_json)


async def _run(database: Path, port: int, once: bool) -> dict[str, Any]:
    started = time.monotonic()
    async with World(stands_still=once) as world:
        wiring = wiring_of(world, f"sqlite:///{database}")
        async with App(wiring) as app:
            if once:
                return await _process_all(app, started)
            await _live(app, world, port)
    return {}


def wiring_of(world: World, database_url: str) -> Wiring:
    """Return the values for the parts to live in a sample world."""
    limits = Limits(first_byte_seconds=PAGE_SECONDS)
    settings = check(world.settings(database_url))
    return wiring_from(settings, loopback_allowed=world.loopback(), limits=limits)


async def _live(app: App, world: World, port: int) -> None:
    stop = stop_on_signals()
    loops = await loops_for(app, "all", Server(port=port).model_dump(), is_demo=True)
    say(f"""
tidings runs on the sample world: invented news, threads, calls and repositories, served on this machine only.

  dashboard    {app.address}
  API          {app.address}/docs
  Discord      {world.url("discord")}/   (the channel, as its readers see it)

Look at one item's life line, at the dead letters (revive one), and at the workflow of Hacker News.
New things keep arriving for ten minutes. Ctrl-C stops it; nothing stays on disk.
""")
    await run_loops(loops, stop)


async def _process_all(app: App, started: float) -> dict[str, Any]:
    await app.poller.declare()
    found: dict[str, int] = {}
    for pipeline in app.pipelines.values():
        runs = await asyncio.gather(*(app.poller.ask(source.name, force=True) for source in pipeline.sources))
        found[pipeline.name] = sum(run.new for run in runs if run is not None)
    await app.worker().until_idle(wait_for_due_seconds=ONCE_SECONDS)
    await app.sweeper.tidy()
    return report(app, found, time.monotonic() - started)


def report(app: App, found: dict[str, int], seconds: float) -> dict[str, Any]:
    """Say what became of everything."""
    status = app.store.desk.status()
    dead = app.store.desk.dead_letters()
    return {
        "pipelines": {
            name: {
                "found": found.get(name, 0),
                "states": {state: count for state, count in view.states.items() if count},
                "parked": view.parked,
                "dead_letters": {g.cause: g.count for g in dead if g.pipeline == name},
                "announced": view.deliveries.get("sent", 0),
            }
            for name, view in status.pipelines.items()
        },
        "seconds": round(seconds, 1),
    }


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    rows = [
        (
            name,
            part["found"],
            ", ".join(f"{state} {count}" for state, count in part["states"].items()),
            sum(part["dead_letters"].values()),
            part["parked"],
            part["announced"],
        )
        for name, part in found["pipelines"].items()
    ]
    show_table(("pipeline", "found", "by state", "dead letters", "parked", "announced"), rows, empty="nothing")
    for name, part in found["pipelines"].items():
        for cause, count in part["dead_letters"].items():
            say(f"{name}: {count} × {cause}")
    say(f"{found['seconds']} s")
