"""`tidings backup`: writes a backup while everything goes on running, or verifies one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.help import Command, GroupWithDefault
from tidings.cli.options import BackupArgument, ConfigOption, JsonOption
from tidings.cli.output import moment, say, show_json
from tidings.cli.progress import progress_bar
from tidings.cli.store import bring_up_to_date, opened_database
from tidings.store.upkeep.backup import Backup, write_backup
from tidings.store.upkeep.backup import verify as verified

backup = typer.Typer(
    name="backup",
    cls=GroupWithDefault,
    help="Write a backup, or verify one. `tidings backup FILE` is short for `tidings backup write FILE`.",
    no_args_is_help=True,
    # Options before FILE belong to `write`, which is then not named yet.
    context_settings={"ignore_unknown_options": True},
)


@backup.command("write", cls=Command)
def write(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; a SQLite file, whatever the database.")],
    config: ConfigOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a verified backup while everything goes on running."""
    with opened_database(config, must_exist=True) as database, progress_bar("backing up", as_json) as show:
        bring_up_to_date(database)
        done = write_backup(database, file, replace=force, progress=show)
    if as_json:
        show_json(asdict(done))
        return
    say(f"{_summary(done)}, checked")
    say("It holds no secret of the configuration; keep tidings.toml and the environment's secrets too.")


@backup.command("verify", cls=Command)
def verify(file: Annotated[Path, BackupArgument], as_json: JsonOption = False) -> None:
    """Read a backup whole and compare it with its digests. Exit code 1 if anything differs."""
    with progress_bar("verifying", as_json) as show:
        found = verified(file, progress=show)
    if as_json:
        show_json(asdict(found))
        return
    say(f"{_summary(found)}; every table holds what was written")


def _summary(backup: Backup) -> str:
    size = f"{backup.size_bytes / 1e6:.1f} MB"
    return f"{backup.file}: {backup.items} items as of {moment(backup.taken_at)}, {size}, digest {backup.digest}"
