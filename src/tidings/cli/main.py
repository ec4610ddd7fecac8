"""`tidings`: the commands, grouped."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated, Any

import typer

from tidings import __version__
from tidings.cli import acting, demo, keeping, looking, running, setting_up, trying
from tidings.cli.help import Group
from tidings.cli.output import end, fail
from tidings.model.errors import TidingsError

PANELS = (setting_up.PANEL, running.PANEL, looking.PANEL, acting.PANEL, trying.PANEL, keeping.PANEL)


class Grouped(Group):
    """Lists the commands by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # Typer keeps its types to itself
        """Write one list for each group."""
        room = formatter.width - 6 - max(map(len, self.commands))
        for panel in PANELS:
            inside = [(n, c) for n, c in self.commands.items() if getattr(c, "rich_help_panel", None) == panel]
            with formatter.section(panel):
                formatter.write_dl([(name, command.get_short_help_str(room)) for name, command in inside])


def _say_version(asked: bool) -> None:
    if asked:
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


for part in (setting_up, running, demo, looking, acting, trying, keeping):
    part.add_to(app)


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
