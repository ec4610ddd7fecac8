"""What commands share: the options every one understands, and opening the store or the whole application."""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tidings.app import App
from tidings.cli.output import end, fail, moment
from tidings.config import Settings, load
from tidings.model.errors import Misconfigured, StoreUnavailable, TidingsError
from tidings.model.pipeline import Pipeline
from tidings.model.views import ItemView
from tidings.store.checks import marked, vet
from tidings.store.database import Database, connect, wait_for_server
from tidings.store.migrate import migrate
from tidings.store.store import Store, open_store
from tidings.watch import logs
from tidings.watch.memory import bound_memory
from tidings.wiring import Wiring, wiring_from

T = TypeVar("T")
LEAVE_SECONDS = 25.0
"""What a stop may take."""

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="The configuration file; default tidings.toml.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
LogOption = Annotated[
    str, typer.Option("--log-format", metavar="human|json", envvar="TIDINGS_LOG_FORMAT", help="How to log.")
]


def settings_from(config: Path | None) -> Settings:
    """Load the configuration, or end with exit code 2."""
    try:
        return load(config)
    except TidingsError as error:
        end(error)


def wiring_of(config: Path | None, **changes: Any) -> Wiring:
    """Load the configuration as values for the parts, or end with exit code 2."""
    settings = settings_from(config)
    try:
        return wiring_from(settings, **changes)
    except TidingsError as error:
        end(error)


@contextmanager
def opened_store(config: Path | None) -> Iterator[tuple[Store, dict[str, Pipeline]]]:
    """Open the store for one command, without starting anything."""
    from tidings.publish.deliveries import delivering

    wiring = wiring_of(config)
    tell_waits()
    try:
        pipelines = with_delivery_kinds(wiring)
        database = connect(wiring.database_url, durability=wiring.durability)
        try:
            bring_up_to_date(database)
            channels = {spec.name: spec.kind for spec in wiring.channels}
            deliver = delivering(wiring.routes)
            yield open_store(database, pipelines, channels=channels, deliver=deliver), pipelines
        finally:
            database.close()
    except TidingsError as error:
        end(error)


def tell_waits() -> None:
    """Let a command that has to wait for the database say so on stderr."""
    if not logs.log.handlers:
        logs.set_up("human", logging.WARNING)


def found_item(store: Store, pipeline: str, kind: str, key: str) -> ItemView:
    """Return an item by its name, or end with exit code 1."""
    view = store.desk.find(pipeline, kind, key)
    if view is None:
        removed = [each for each in store.tombstones.list(pipeline=pipeline, key=key) if each.kind == kind]
        if removed:
            since, until = moment(removed[0].buried_at), moment(removed[0].forget_at)
            lifting = f"`tidings tombstones lift {pipeline} {kind} {key}`"
            fail(
                f"{kind} {key!r} was removed on {since}, and is remembered as such until {until}; {lifting} ends that",
                1,
            )
        fail(f"{pipeline} remembers no {kind} {key!r}; `tidings items --pipeline {pipeline}` lists what there is", 1)
    return view


def bring_up_to_date(database: Database) -> list[int]:
    """Apply the missing migrations; a newer or altered schema is the database's fault, not the configuration's."""
    try:
        return migrate(database)
    except Misconfigured as error:
        raise StoreUnavailable(str(error)) from None


def with_delivery_kinds(wiring: Wiring) -> dict[str, Pipeline]:
    """Return the pipelines with their delivery kinds, for commands that only look."""
    from tidings.model.outcome import Outcome
    from tidings.model.workflow import Work
    from tidings.publish.deliveries import with_deliveries

    async def send(work: Work, kit: Any) -> Outcome:  # noqa: ARG001  # a processor's form
        raise Misconfigured("this command sends nothing; a worker does")

    return {p.name: with_deliveries(p, send) if p.announce else p for p in wiring.pipelines}


def run_fast(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, which serves about a third more requests than the standard loop, where there is one."""
    bound_memory()
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def run_app(wiring: Wiring, use: Callable[[App], Coroutine[Any, Any, T]], *, stays: bool = False) -> T:
    """Open the application, use it, close it; mistakes end with a message.

    A process that `stays` looks at the database before anything is written, and leaves a mark while it works.
    """

    async def main() -> T:
        async with App(wiring) as app:
            with marked(app.database) if stays else nullcontext():
                return await use(app)

    try:
        if stays:
            wait_for_server(wiring.database_url)
        for note in vet(wiring.database_url) if stays else ():
            logs.event(note, level=logging.WARNING)
        return run_fast(main())
    except TidingsError as error:
        end(error)


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM, SIGINT and SIGHUP set; a second signal changes nothing."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Whoever started us with nohup wants us to outlive the terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, _begin_to_stop, stop)
    return stop


def _begin_to_stop(stop: asyncio.Event) -> None:
    if not stop.is_set():
        stop.set()
        last = threading.Timer(LEAVE_SECONDS, _leave)
        last.daemon = True
        last.start()


def _leave() -> None:
    """End although a thread still runs; whatever it held runs out by itself."""
    logs.event("stopped without waiting for what was still running", level=logging.WARNING)
    os._exit(1)


def set_up_logs(form: str) -> None:
    """Write events to stderr, for people or for programs."""
    if form not in ("human", "json"):
        fail(f"--log-format {form!r}: use human or json")
    logs.set_up("json" if form == "json" else "human")


def actor() -> str:
    """Name who acts, for the journal."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):
        return "cli"
