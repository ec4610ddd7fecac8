"""The options and arguments that commands share, and the settings they lead to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.cli.output import end, fail
from tidings.config import Settings, load
from tidings.model.errors import TidingsError
from tidings.watch import logs
from tidings.wiring import Wiring, wiring_from

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="The configuration file; default tidings.toml.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
LogOption = Annotated[
    str, typer.Option("--log-format", metavar="human|json", envvar="TIDINGS_LOG_FORMAT", help="How to log.")
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", metavar="PORT", min=0, max=65535, help="Serve this process's /metrics on a port of its own."
    ),
]
PipelineArgument = typer.Argument(metavar="PIPELINE", help="The pipeline's name, such as hacker_news.")
PipelineOrNumberArgument = typer.Argument(
    metavar="PIPELINE|ITEM", help="The pipeline's name, or alone the item's number, as `tidings items` shows it."
)
KindArgument = typer.Argument(metavar="KIND", help="The kind of item, such as item or article.")
KeyArgument = typer.Argument(metavar="KEY", help="The item's key, as `tidings items` shows it.")
BackupArgument = typer.Argument(metavar="FILE", help="A backup made by tidings backup.")


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


def set_up_logs(form: str) -> None:
    """Write events to stderr, for people or for programs."""
    if form not in ("human", "json"):
        fail(f"--log-format {form!r}: use human or json")
    logs.set_up("json" if form == "json" else "human")
