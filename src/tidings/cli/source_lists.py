"""`tidings source import|export`: lists of feeds, as other readers have them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from tidings.cli.options import ConfigOption, JsonOption
from tidings.cli.output import fail, say, show_json, while_read
from tidings.cli.progress import Meter
from tidings.cli.store import opened_store
from tidings.discover.opml import BYTES_MAX, Outline, read_opml, write_opml
from tidings.model.errors import BadInput
from tidings.model.pipeline import Defined
from tidings.model.urls import shown_url
from tidings.store.source_edits import AlreadyWatched
from tidings.store.store import Store

PipelineOption = Annotated[str, typer.Option(help="The pipeline that watches them.")]


class Taken(msgspec.Struct, frozen=True):
    """What became of one line of a list."""

    line: int
    address: str
    title: str | None
    outcome: Literal["added", "there already", "refused"]
    name: str | None = None
    reason: str | None = None


def import_sources(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="OPML, as other readers export it.")],
    config: ConfigOption = None,
    pipeline: PipelineOption = "feeds",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be added.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Watch the feeds of an OPML list, with their folders as categories. Tells of every line what became of it."""
    try:
        data = sys.stdin.buffer.read(BYTES_MAX + 1) if file == "-" else Path(file).read_bytes()
        reading = read_opml(data)
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    except BadInput as error:
        fail(str(error))
    with opened_store(config, reads=dry_run) as (store, _), Meter("importing") as meter:
        taken: list[Taken] = []
        for outline in reading.outlines:
            taken.append(_take(store, pipeline, outline, dry_run=dry_run))
            meter.show(f"{len(taken):,} feeds", len(taken), len(reading.outlines))
    counts = Counter(each.outcome for each in taken)
    if as_json:
        show_json({"counts": counts, "lines": taken, "notes": reading.notes})
    else:
        for each in taken:
            told = f": {each.reason}" if each.reason else f" as {each.name}" if each.name else ""
            say(f"line {each.line}: {each.title or each.address}: {each.outcome}{told}")
        for note in reading.notes:
            say(note)
        would = "would be " if dry_run else ""
        say(", ".join(f"{counts[o]} {would if o == 'added' else ''}{o}" for o in ("added", "there already", "refused")))
    if taken and not counts["added"] and not counts["there already"]:
        raise SystemExit(1)


def export_sources(
    config: ConfigOption = None,
    pipeline: PipelineOption = "feeds",
) -> None:
    """Write the feeds that are watched as OPML, to standard output."""
    with opened_store(config, reads=True) as (store, _):
        placed = [each for each in store.source_list.current().values() if each.pipeline.name == pipeline]
    definitions = [each.source.definition for each in placed if isinstance(each.source, Defined)]
    outlines = [Outline(0, each.address, each.title, each.category) for each in definitions if each.kind == "feed"]
    with while_read():
        sys.stdout.write(write_opml(outlines, "Sources of tidings").decode())


def _take(store: Store, pipeline: str, outline: Outline, *, dry_run: bool) -> Taken:
    """Add one feed of a list, or say why not."""
    said = {"address": outline.address, "title": outline.title, "category": outline.category}
    told = (outline.line, shown_url(outline.address), outline.title)
    if outline.trouble:
        return Taken(*told, "refused", reason=outline.trouble)
    try:
        raw = {key: value for key, value in said.items() if value}
        return Taken(*told, "added", name=store.source_edits.add(pipeline, raw, dry_run=dry_run))
    except AlreadyWatched as error:
        return Taken(*told, "there already", name=error.name)
    except BadInput as error:
        return Taken(*told, "refused", reason=str(error))
