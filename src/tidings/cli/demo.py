"""`tidings demo`: the real system against the sample world."""

from __future__ import annotations

import asyncio
import logging
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.app import App
from tidings.cli.options import JsonOption
from tidings.cli.output import console, fail, say, show_json, show_table
from tidings.cli.process import run_fast, stop_on_signals
from tidings.cli.run import loops_for
from tidings.cli.sample_config import write_config
from tidings.config import DEFAULT_FILE, Server, check
from tidings.model.errors import TidingsError
from tidings.net.client import FetchLimits
from tidings.process.loops import run_loops
from tidings.sample.world import World
from tidings.watch import logs
from tidings.wiring import Wiring, wiring_from

ONCE_SECONDS = 45.0
"""How long a retry or a rate limit is waited for before `--once` calls the rest finished."""
PAGE_SECONDS = 1.5
"""The sample page that hangs should not hold up a newcomer for long."""
DATABASE = "tidings.db"
STOPPED = 130
"""What `--once` exits with when it was stopped half-way."""
Tell = Callable[[str], None]


def demo(
    port: Annotated[int, typer.Option(help="Where the dashboard listens.", min=0, max=65535)] = 8000,
    once: Annotated[bool, typer.Option("--once", help="Process everything, print a report, exit.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep the database in this folder, with a tidings.toml to look at it.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run everything on the sample world. No keys, no network, nothing on disk afterwards."""
    logs.set_up("human", logging.ERROR)
    if not once:
        _refuse_taken(port)
    if keep is not None:
        _prepare(keep)
    try:
        report = run_fast(_run(keep, port, once=once, quiet=as_json))
    except TidingsError as error:
        fail(str(error), 1)
    if not once:
        return
    if report is None:
        fail("stopped before everything was processed", STOPPED)
    _show(report, as_json)


def _refuse_taken(port: int) -> None:
    """Say at once that the dashboard cannot be where it should be."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        other = port + 1 if port < 65535 else port - 1
        fail(
            f"port {port} cannot be used, probably because something listens there; "
            f"try --port {other} (make run PORT={other})"
        )


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"--keep {folder}: {error.strerror}")
    for name in (DATABASE, DEFAULT_FILE):
        if (folder / name).exists():
            fail(f"--keep {folder}: there is a {name} already; choose an empty folder")


async def _run(keep: Path | None, port: int, *, once: bool, quiet: bool) -> dict[str, Any] | None:
    """Run until everything is processed or a signal comes; only then return what became of it."""
    started = time.monotonic()
    # The signals are caught before anything is on disk: SIGTERM, too, must leave nothing behind.
    stop = stop_on_signals()
    with _folder(keep) as folder:
        async with World(stands_still=once) as world:
            database_url = f"sqlite:///{folder / DATABASE}"
            if keep is not None:
                write_config(folder / DEFAULT_FILE, world.settings(database_url))
            async with App(wiring_of(world, database_url, is_kept=keep is not None)) as app:
                # Two of the pipelines read pages. Where that cannot work, nothing would ever be finished.
                await app.extractor.check()
                if not once:
                    await _live(app, world, port, keep, stop)
                    return None
                with _progress(quiet) as tell:
                    return await _unless(stop, process_all(app, started, tell))


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="tidings-demo-") as folder:
        yield Path(folder)


async def _unless(stop: asyncio.Event, work: Any) -> dict[str, Any] | None:
    """Do the work, or give it up when told to stop."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return None
    result: dict[str, Any] = working.result()
    return result


def wiring_of(world: World, database_url: str, *, is_kept: bool = False) -> Wiring:
    """Return the values for the parts to live in a sample world."""
    limits = FetchLimits(first_byte_seconds=PAGE_SECONDS)
    settings = check(world.settings(database_url))
    index = {} if is_kept else {"index_dir": None}
    return wiring_from(settings, loopback_allowed=world.loopback(), limits=limits, **index)


async def _live(app: App, world: World, port: int, keep: Path | None, stop: asyncio.Event) -> None:
    loops = await loops_for(app, "all", Server(port=port).model_dump(), is_demo=True)
    kept = "Ctrl-C stops it; nothing stays on disk."
    if keep is not None:
        kept = f"Ctrl-C stops it. In another terminal: cd {keep} && tidings status"
    say(f"""
tidings runs on the sample world: invented news, threads, calls and repositories, served on this machine only.

  dashboard    {app.address}
  API          {app.address}/docs
  Discord      {world.url("discord")}/   (the channel, as its readers see it)

What to look at:
  {app.address}/dead-letters               three things went wrong on purpose: revive them, two will succeed
  {app.address}/pipelines/hacker_news      open a story: its thread on the left, its life line on the right
  {app.address}/workflows/eu_funding       the declared workflow, with live counts

New things keep arriving for ten minutes. {kept}
""")
    await run_loops(loops, stop)


async def process_all(app: App, started: float, tell: Tell) -> dict[str, Any]:
    """Ask every source once, process until nothing is due any more, and report."""
    await app.poller.declare()
    found: dict[str, int] = {}
    for pipeline in app.pipelines.values():
        tell(f"asking the sources of {pipeline.name}")
        names = [
            name for name, placed in app.store.source_list.current().items() if placed.pipeline.name == pipeline.name
        ]
        runs = await asyncio.gather(*(app.poller.ask(name, force=True) for name in names))
        found[pipeline.name] = sum(run.new for run in runs if run is not None)
    tell(f"processing {sum(found.values())} findings, retries and rate limits included")
    await app.worker().until_idle(wait_for_due_seconds=ONCE_SECONDS)
    await app.sweeper.tidy()
    return report(app, found, time.monotonic() - started)


def report(app: App, found: dict[str, int], seconds: float) -> dict[str, Any]:
    """Say what became of everything."""
    status = app.store.status_views.status()
    dead = app.store.item_views.dead_letters()
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


@contextmanager
def _progress(quiet: bool) -> Iterator[Tell]:
    """Show what is being done: one moving line on a terminal, plain lines elsewhere, nothing where JSON goes."""
    if quiet:
        yield lambda _: None
    elif console.is_terminal:
        with console.status("starting") as status:
            yield lambda text: status.update(text)
    else:
        yield say


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
    if any(part["dead_letters"] for part in found["pipelines"].values()):
        say("\ndead letters by cause:")
    for name, part in found["pipelines"].items():
        for cause, count in part["dead_letters"].items():
            say(f"  {name}: {count} × {cause}")
    say(f"\n{found['seconds']} s")
