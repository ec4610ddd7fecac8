"""`tidings`: the commands, grouped."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated

import typer

from tidings import __version__
from tidings.cli.commands import Commands
from tidings.cli.completion import COMPLETING
from tidings.cli.output import end, fail
from tidings.model.errors import TidingsError


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidings {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="tidings",
    cls=Commands,
    help="Watches sources, remembers everything new, enriches each item durably, and delivers the result. "
    "`tidings demo` shows it all on a sample world; `tidings init` begins the real thing. Times are UTC.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    """Take what stands before the command."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; whatever goes wrong is one clear sentence, never a traceback."""
    # Where nothing set up a log, what libraries have to say would spoil the sentence that we say ourselves.
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
    if COMPLETING in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    try:
        app(arguments, prog_name="tidings")
    except TidingsError as error:
        end(error)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if os.environ.get("TIDINGS_DEBUG"):
            raise
        fail(f"a mistake in tidings itself: {type(error).__name__}: {error}; TIDINGS_DEBUG=1 shows where", 1)
