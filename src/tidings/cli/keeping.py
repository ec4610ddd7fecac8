"""Commands that keep what there is: export, backup, restore, db."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from tidings.cli.help import Command, Group, GroupWithDefault, PipelineArgument
from tidings.cli.output import console, end, fail, moment, say, show_json, while_somebody_reads
from tidings.cli.shared import ConfigOption, JsonOption, bring_up_to_date, opened_store, tell_waits, wiring_of
from tidings.model.errors import TidingsError
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection
from tidings.store.backup import Backup, write_backup
from tidings.store.backup import Progress as Told
from tidings.store.backup import verify as verified
from tidings.store.checks import vet
from tidings.store.database import Database, connect
from tidings.store.restore import PARKED, restore_backup
from tidings.store.store import Store

PANEL = "Keep"
PAGE = 500
FORMULA = re.compile("[\\s\x00-\x1f\u200b\ufeff]*[=+@\uff0b\uff0d\uff1d\uff20-]|[\t\r]")
"""A spreadsheet would take a cell that begins so for a formula; some skip blanks, some know the wide forms too."""

BackupArgument = typer.Argument(metavar="FILE", help="A backup made by tidings backup.")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(rich_help_panel=PANEL, cls=Command)(export)
    backup = typer.Typer(
        cls=GroupWithDefault,
        help="Write a backup, or verify one. `tidings backup FILE` is short for `tidings backup write FILE`.",
        no_args_is_help=True,
        # Options before FILE belong to `write`, which is then not named yet.
        context_settings={"ignore_unknown_options": True},
    )
    backup.command("write", cls=Command)(write)
    backup.command("verify", cls=Command)(verify)
    app.add_typer(backup, name="backup", rich_help_panel=PANEL)
    app.command(rich_help_panel=PANEL, cls=Command)(restore)
    db = typer.Typer(cls=Group, help="Bring the schema up to date; rebuild what readers see.", no_args_is_help=True)
    db.command("migrate", cls=Command)(migrate)
    rebuild = typer.Typer(cls=Group, help="Write shelf and search index anew from the items.", no_args_is_help=True)
    rebuild.command("shelf", cls=Command)(rebuild_all)
    rebuild.command("index", cls=Command)(rebuild_all)
    db.add_typer(rebuild, name="rebuild")
    app.add_typer(db, name="db", rich_help_panel=PANEL)


def export(
    pipeline: Annotated[str, PipelineArgument],
    config: ConfigOption = None,
    form: Annotated[str, typer.Option("--format", metavar="jsonl|csv", help="How to write it.")] = "jsonl",
    collection: Annotated[str | None, typer.Option(help="Only this collection, such as articles.")] = None,
) -> None:
    """Write everything published to standard output, newest first."""
    if form not in ("jsonl", "csv"):
        fail(f"--format {form!r}: use jsonl or csv")
    with opened_store(config) as (store, pipelines), while_somebody_reads():
        if pipeline not in pipelines:
            fail(f"pipeline {pipeline!r} is not on; on are {', '.join(pipelines) or 'none'}")
        chosen = _chosen(pipelines[pipeline], collection)
        if form == "csv":
            if len(chosen) > 1:
                fail(f"a table holds one collection; add --collection {' or '.join(c.name for c in chosen)}")
            _write_csv(store, pipeline, chosen[0])
        else:
            _write_lines(store, pipeline, chosen)


def _chosen(pipeline: Pipeline, name: str | None) -> list[Collection]:
    # What was announced is no content; it is written only when asked for.
    chosen = [c for c in pipeline.collections if c.name == name or (name is None and c.kind != "delivery")]
    if not chosen:
        fail(f"{pipeline.name} publishes no {name!r}; it has {', '.join(c.name for c in pipeline.collections)}")
    return chosen


def _cards(store: Store, pipeline: str, collection: str) -> Iterator[bytes]:
    after: tuple[int, str] | None = None
    while page := store.shelf.newest(pipeline, collection, limit=PAGE, after=after):
        yield from (entry.value for entry in page)
        after = (page[-1].sort, page[-1].key)


def _write_lines(store: Store, pipeline: str, chosen: list[Collection]) -> None:
    for collection in chosen:
        # Where there are several, each line says which it belongs to.
        mark = b'{"collection":%s,' % msgspec.json.encode(collection.name) if len(chosen) > 1 else b"{"
        for card in _cards(store, pipeline, collection.name):
            sys.stdout.buffer.write(mark + card[1:] + b"\n")
    sys.stdout.buffer.flush()


def _write_csv(store: Store, pipeline: str, collection: Collection) -> None:
    columns = list(collection.card.__struct_fields__)
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
    table = csv.writer(sys.stdout)
    table.writerow(columns)
    for card in _cards(store, pipeline, collection.name):
        values = msgspec.json.decode(card)
        table.writerow([_cell(values.get(column)) for column in columns])


def _cell(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return msgspec.json.encode(value).decode()
    if isinstance(value, str) and FORMULA.match(value):
        return f"'{value}"
    return value


def write(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; a SQLite file, whatever the database.")],
    config: ConfigOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a verified backup while everything goes on running."""
    with _database(config) as database, _bar("backing up", as_json) as told:
        bring_up_to_date(database)
        done = write_backup(database, file, replace=force, progress=told)
    if as_json:
        show_json(asdict(done))
        return
    say(f"{_summary(done)}, checked")
    say("It holds no secret of the configuration; keep tidings.toml and the environment's secrets too.")


def verify(file: Annotated[Path, BackupArgument], as_json: JsonOption = False) -> None:
    """Read a backup whole and compare it with its digests. Exit code 1 if anything differs."""
    with _bar("verifying", as_json) as told:
        found = verified(file, progress=told)
    if as_json:
        show_json(asdict(found))
        return
    say(f"{_summary(found)}; every table holds what was written")


def _summary(backup: Backup) -> str:
    size = f"{backup.size_bytes / 1e6:.1f} MB"
    return f"{backup.file}: {backup.items} items as of {moment(backup.taken_at)}, {size}, digest {backup.digest}"


def restore(
    file: Annotated[Path, BackupArgument],
    config: ConfigOption = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Take a backup of an older version, which has no digests, as it is.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring a backup back into an empty database. Nothing is sent by itself afterwards."""
    with _bar("verifying", as_json) as told:
        found = verified(file, unverified=unverified, progress=told)
    vet(wiring_of(config).database_url)
    with _database(config) as database, _bar("restoring", as_json) as told:
        done = restore_backup(found, database, progress=told)
        name = database.describe()
    if as_json:
        show_json(asdict(done))
        return
    taken = moment(done.taken_at)
    say(f"{name} holds {done.items} items as of {taken} ({done.rows} rows). {done.leases} leases were ended.\n")
    say(f"What happened after {taken} is not in it:")
    say("  missing: what was uploaded since; whoever sent it must send it again")
    say("  healed: what sources brought since; they are read again from where they stood then")
    say(f"  repeated: work on the {done.unfinished} items that were not finished, and what they announce when they are")
    if done.deliveries_parked:
        say(f"\n{done.deliveries_parked} notices were not sent then and may have been since. They are parked:")
        say("  tidings items --standing parked                shows them")
        say("  tidings dead revive ITEM                       sends one")
        say(f'  tidings dead revive --cause "{PARKED}"   sends all')


def migrate(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Bring the schema up to date. Every command that opens the database does the same."""
    with _database(config) as database:
        applied = bring_up_to_date(database)
        name = database.describe()
    if as_json:
        show_json({"applied": applied})
        return
    say(f"{name}: {f'applied {applied}' if applied else 'the schema is up to date'}")


def rebuild_all(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Write shelf and search index anew from the items. Both are rebuilt together, whichever is named."""
    with opened_store(config) as (store, _), _bar("rebuilding", as_json) as told:
        total = sum(sum(view.states.values()) for view in store.desk.status().pipelines.values())
        done = 0

        def count(items: int) -> None:
            nonlocal done
            done += items
            told(done, max(total, done))

        shown = store.rebuilder.rebuild(progress=count)
    if as_json:
        show_json({"shown": shown})
        return
    say(f"{shown} items are on the shelf and in the index again")


@contextmanager
def _database(config: Path | None) -> Iterator[Database]:
    wiring = wiring_of(config)
    tell_waits()
    try:
        database = connect(wiring.database_url, durability=wiring.durability)
        try:
            yield database
        finally:
            database.close()
    except TidingsError as error:
        end(error)


@contextmanager
def _bar(what: str, quiet: bool) -> Iterator[Told]:
    """Show a bar on a terminal; elsewhere nothing."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
