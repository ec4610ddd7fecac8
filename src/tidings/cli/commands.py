"""The commands by what they are for. A command's file is imported when that command is used: `--help` needs none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.main import get_command, get_group

from tidings.cli.help import Command, Group

PANELS: dict[str, dict[str, str]] = {
    "Set up": {
        "init": "Write a commented configuration.",
        "doctor": "Check everything and say what to fix.",
        "source": "Sources: list, add, change, remove or try them.",
        "token": "Tokens for the server's API and dashboard.",
        "notify": "Try the channels.",
        "route": "Try a route before it is on.",
        "completion": "Print a script that completes commands in your shell.",
    },
    "Run": {
        "run": "Ask sources, process, serve: the real thing.",
        "reload": "Let running processes read their configuration again.",
        "work": "Process what is due.",
        "discover": "Ask a pipeline's sources once, now.",
        "serve": "Serve the read-only API from a mirror.",
        "mcp": "Serve agents by the Model Context Protocol.",
        "demo": "Run everything on the sample world.",
    },
    "Look": {
        "status": "Show every pipeline at a glance.",
        "items": "List items, newest first.",
        "explain": "Show an item's life line.",
        "search": "Search everything published.",
        "workflow": "Draw the declared workflow of a pipeline.",
    },
    "Act": {
        "transition": "Perform a manual transition on one item.",
        "replay": "Process items again from a state.",
        "pause": "Stop a part without losing anything.",
        "resume": "Start a paused part again.",
        "upload": "Upload items into the intake log.",
        "dead": "Dead letters: list them by cause, revive or purge them.",
        "story": "Stories: list them, split one or join several.",
        "tombstones": "Tombstones of removed items: list them, or lift them.",
    },
    "Try": {"try": "Show what tidings makes of a page or text."},
    "Keep": {
        "export": "Write everything published to standard output, newest first.",
        "restore": "Bring a backup or a copy back into an empty database.",
        "backup": "Write a backup, or verify one.",
        "mirror": "Mirrors of what readers see: check one, or repair it.",
        "db": "Bring the schema up to date; rebuild what readers see.",
    },
}
"""Every command with its line in `tidings --help`, in that order. Each stands in the file of its name."""

FILES = {"resume": "pause", "try": "try_"}
"""The files that are not named after their command: one holds two, the other's name would be a keyword."""


class LateCommands(Mapping[str, Any]):
    """The commands by name, each imported when it is asked for."""

    def __init__(self) -> None:
        self._names = {name: None for panel in PANELS.values() for name in panel}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> Any:
        """Import the file of a command and return the command as Typer's parser wants it."""
        if name not in self._names:
            raise KeyError(name)
        part = getattr(import_module(f"tidings.cli.{FILES.get(name, name)}"), "try_" if name == "try" else name)
        if isinstance(part, typer.Typer):
            part.rich_markup_mode = None
            return get_group(part)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, cls=Command)(part)
        return get_command(alone)


class Commands(Group):
    """All commands below `tidings`, listed by what they are for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": {}})
        self.commands: Any = LateCommands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # Typer keeps its types to itself
        """Write one list for each panel."""
        for panel, commands in PANELS.items():
            with formatter.section(panel):
                formatter.write_dl(list(commands.items()))

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Offer names with their lines; the files behind them are not needed for that."""
        lines = {name: line for panel in PANELS.values() for name, line in panel.items()}
        self.commands = {name: Command(name=name, help=line) for name, line in lines.items()}
        return super().shell_complete(ctx, incomplete)
