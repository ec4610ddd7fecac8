"""`tidings`: the commands, grouped."""

from __future__ import annotations

import sys

import typer

from tidings.cli import acting, demo, looking, running
from tidings.cli.output import fail
from tidings.model.errors import TidingsError

app = typer.Typer(
    name="tidings",
    help="Watches sources, remembers everything new, enriches each item durably, and delivers the result.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for part in (running, demo, looking, acting):
    part.add_to(app)


def main() -> None:
    """Run a command; whatever goes wrong is one clear sentence, never a traceback."""
    try:
        app()
    except TidingsError as error:
        fail(str(error), 1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
