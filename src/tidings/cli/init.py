"""`tidings init`: writes a commented configuration to start from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.output import fail, say
from tidings.config import DEFAULT_FILE


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path(DEFAULT_FILE),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented configuration. Everything that needs no key is on, the rest ready to fill in."""
    text = resources.files("tidings.cli").joinpath("template.toml").read_text("utf-8")
    try:
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        fail(f"{file} exists already; --force overwrites it")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")
    say(f"wrote {file}. Next:\n  tidings doctor   checks it and says what keys would add")
    say("  tidings run      starts; the dashboard is on http://127.0.0.1:8000")
