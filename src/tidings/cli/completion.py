"""`tidings completion`: a script that lets a shell complete commands and options."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.output import fail

COMPLETING = "_TIDINGS_COMPLETE"
"""The variable by which a shell asks for completions instead of a command."""
SHELLS = ("bash", "zsh", "fish")


def completion(shell: Annotated[str, typer.Argument(metavar="|".join(SHELLS), help="Your shell.")]) -> None:
    """Print a script that completes commands in your shell. For bash: `tidings completion bash >> ~/.bashrc`."""
    # Typer's completion also brings a detector of shells that is slow to import; it is wanted here alone.
    from typer._completion_shared import get_completion_script

    if shell not in SHELLS:
        fail(f"{shell!r} is not one of {', '.join(SHELLS)}")
    typer.echo(get_completion_script(prog_name="tidings", complete_var=COMPLETING, shell=shell))
