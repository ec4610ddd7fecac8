"""`tidings`: the commands, grouped."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from tidings import __version__
from tidings.cli.backup import backup
from tidings.cli.db import db
from tidings.cli.dead import dead
from tidings.cli.demo import demo
from tidings.cli.discover import discover
from tidings.cli.doctor import doctor
from tidings.cli.explain import explain
from tidings.cli.export import export
from tidings.cli.help import Command, Group
from tidings.cli.init import init
from tidings.cli.items import items
from tidings.cli.mirror import mirror
from tidings.cli.notify import notify
from tidings.cli.output import end, fail
from tidings.cli.pause import pause, resume
from tidings.cli.replay import replay
from tidings.cli.restore import restore
from tidings.cli.run import run
from tidings.cli.search import search
from tidings.cli.serve import serve
from tidings.cli.status import status
from tidings.cli.token import token
from tidings.cli.tombstones import tombstones
from tidings.cli.transition import transition
from tidings.cli.try_ import try_
from tidings.cli.upload import upload
from tidings.cli.work import work
from tidings.cli.workflow import workflow
from tidings.model.errors import TidingsError

PANELS: dict[str, tuple[Callable[..., None] | typer.Typer, ...]] = {
    "Set up": (init, doctor, token, notify),
    "Run": (run, work, discover, serve, demo),
    "Look": (status, items, explain, search, workflow),
    "Act": (transition, replay, pause, resume, upload, dead, tombstones),
    "Try": (try_,),
    "Keep": (export, backup, restore, mirror, db),
}
"""Every command by what it is for, in the order of `tidings --help`. Each stands in the file of its name."""


class Grouped(Group):
    """Lists the commands by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # Typer keeps its types to itself
        """Write one list for each group."""
        room = formatter.width - 6 - max(map(len, self.commands))
        for panel in PANELS:
            inside = [(n, c) for n, c in self.commands.items() if getattr(c, "rich_help_panel", None) == panel]
            with formatter.section(panel):
                formatter.write_dl([(name, command.get_short_help_str(room)) for name, command in inside])


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidings {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="tidings",
    cls=Grouped,
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


for panel, commands in PANELS.items():
    for command in commands:
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=panel)
        else:
            # `try` is a keyword: its function and file are called try_.
            app.command(command.__name__.rstrip("_"), rich_help_panel=panel, cls=Command)(command)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; whatever goes wrong is one clear sentence, never a traceback."""
    # Where nothing set up a log, what libraries have to say would spoil the sentence that we say ourselves.
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
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
