"""What commands share: the options every one understands, and opening the store or the whole application."""

from __future__ import annotations

import asyncio
import getpass
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tidings.app import App, Wiring, wiring_from
from tidings.cli.output import fail
from tidings.config import Settings, load
from tidings.model.errors import BadInput, TidingsError
from tidings.model.pipeline import Pipeline
from tidings.store.database import connect
from tidings.store.migrate import migrate
from tidings.store.store import Store, open_store

T = TypeVar("T")

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="The configuration file; default tidings.toml.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
LogOption = Annotated[str, typer.Option("--log-format", help="human or json.")]


def settings_from(config: Path | None) -> Settings:
    """Load the configuration, or end with exit code 2."""
    try:
        return load(config)
    except TidingsError as error:
        fail(str(error))


def wiring_of(config: Path | None, **changes: Any) -> Wiring:
    """Load the configuration as values for the parts, or end with exit code 2."""
    settings = settings_from(config)
    try:
        return wiring_from(settings, **changes)
    except TidingsError as error:
        fail(str(error))


@contextmanager
def opened_store(config: Path | None) -> Iterator[tuple[Store, dict[str, Pipeline]]]:
    """Open the store for one command, without starting anything."""
    wiring = wiring_of(config)
    try:
        pipelines = with_delivery_kinds(wiring)
        database = connect(wiring.database_url, durability=wiring.durability)
        try:
            migrate(database)
            channels = {spec.name: spec.kind for spec in wiring.channels}
            yield open_store(database, pipelines, channels=channels), pipelines
        finally:
            database.close()
    except BadInput as error:
        fail(str(error))
    except TidingsError as error:
        fail(str(error), 1)


def with_delivery_kinds(wiring: Wiring) -> dict[str, Pipeline]:
    """Return the pipelines with their delivery kinds, for commands that only look."""
    from tidings.model.errors import Misconfigured
    from tidings.model.outcome import Outcome
    from tidings.model.workflow import Work
    from tidings.publish.deliveries import with_deliveries

    async def send(work: Work, kit: Any) -> Outcome:  # noqa: ARG001  # a processor's form
        raise Misconfigured("this command sends nothing; a worker does")

    return {p.name: with_deliveries(p, send) if p.announce else p for p in wiring.pipelines}


def run_app(wiring: Wiring, use: Callable[[App], Coroutine[Any, Any, T]]) -> T:
    """Open the application, use it, close it; mistakes end with a message."""

    async def main() -> T:
        async with App(wiring) as app:
            return await use(app)

    try:
        return asyncio.run(main())
    except BadInput as error:
        fail(str(error))
    except TidingsError as error:
        fail(str(error), 1)


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; a second signal changes nothing."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def actor() -> str:
    """Name who acts, for the journal."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):
        return "cli"
