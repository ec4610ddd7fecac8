"""`tidings`: the commands, grouped."""

from __future__ import annotations

import os
import sys

import typer

from tidings.cli import acting, demo, keeping, looking, running, setting_up, trying
from tidings.cli.output import end, fail
from tidings.model.errors import TidingsError

app = typer.Typer(
    name="tidings",
    help="Watches sources, remembers everything new, enriches each item durably, and delivers the result.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for part in (setting_up, running, demo, looking, acting, trying, keeping):
    part.add_to(app)


def main() -> None:
    """Run a command; whatever goes wrong is one clear sentence, never a traceback."""
    try:
        app()
    except TidingsError as error:
        end(error)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read us has enough; what is still in the buffer must not raise again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get("TIDINGS_DEBUG"):
            raise
        fail(f"a mistake in tidings itself: {type(error).__name__}: {error}; TIDINGS_DEBUG=1 shows where", 1)
