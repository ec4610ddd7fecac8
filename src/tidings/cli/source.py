"""`tidings source`: what is watched, added and changed without a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from tidings.cli.help import Command, Group
from tidings.cli.options import ConfigOption, JsonOption, wiring_of
from tidings.cli.output import end, fail, moment, say, show_json, show_table
from tidings.cli.source_lists import export_sources, import_sources
from tidings.cli.store import opened_store
from tidings.discover.preview import look
from tidings.model.clock import SystemClock
from tidings.model.contracts import Kit
from tidings.model.errors import TidingsError
from tidings.model.pipeline import Pipeline
from tidings.model.previews import Looked, Preview, Rehearsal
from tidings.model.source_definition import SourceDefinition, checked_definition
from tidings.parts import opened_bench
from tidings.process.memory_ledger import MemoryLedger
from tidings.process.rehearsal import rehearse
from tidings.wiring import Wiring

source = typer.Typer(
    name="source", cls=Group, help="Sources: list, add, change, remove or try them.", no_args_is_help=True
)

AddressArgument = Annotated[str, typer.Argument(metavar="ADDRESS", help="Of a feed, or of a site that announces one.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The source, as `tidings source list` shows it.")]
PipelineOption = Annotated[str, typer.Option(help="The pipeline that watches it.")]
KindOption = Annotated[str | None, typer.Option(help="What stands at the address; `feed` is usual.")]
TitleOption = Annotated[str | None, typer.Option(help="What it is called; by default what it calls itself.")]
CategoryOption = Annotated[str | None, typer.Option(help="The folder it stands in, for people and OPML.")]
LabelOption = Annotated[
    list[str] | None, typer.Option("--label", help="A label that routes and searches know (label:WORD). Repeatable.")
]
IntervalOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Between two looks, such as 30min; by default its own rhythm.")
]
FullTextOption = Annotated[
    bool | None, typer.Option("--full-text/--no-full-text", help="Read the page behind each entry.", show_default=False)
]
FieldOption = Annotated[
    list[str] | None,
    typer.Option(
        "--field", metavar="FIELD=VALUE", help="Anything else, such as cron, include, exclude, priority or language."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="OPTION=VALUE", help="An option of its kind; JSON or text. May be repeated."),
]


@source.command("list", cls=Command)
def list_sources(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List every source. How it is, when it is asked next, and whether the file or the store names it."""
    with opened_store(config, reads=True) as (store, _):
        views = store.status_views.sources()
    if as_json:
        show_json(views)
        return
    show_table(
        ("name", "health", "from", "last success", "next look", "address"),
        [(v.name, v.health, v.origin, moment(v.last_success_at), moment(v.next_check_at), v.address) for v in views],
        empty="no sources; `tidings source add ADDRESS` adds one",
    )


@source.command("add", cls=Command)
def add_source(
    address: AddressArgument,
    config: ConfigOption = None,
    pipeline: PipelineOption = "feeds",
    kind: KindOption = None,
    title: TitleOption = None,
    category: CategoryOption = None,
    labels: LabelOption = None,
    interval: IntervalOption = None,
    full_text: FullTextOption = None,
    fields: FieldOption = None,
    options: SetOption = None,
    unseen: Annotated[bool, typer.Option("--unseen", help="Add it without looking at it first.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Look at an address, and watch it from now on. Every running process knows within seconds."""
    said = _said(
        address=address,
        kind=kind,
        title=title,
        category=category,
        labels=labels,
        interval=interval,
        full_text=full_text,
        fields=fields,
        options=options,
    )
    looked: Looked | None = None
    if not unseen:
        looked, _ = _looked(config, pipeline, said, rehearses=False)
        if looked.preview.error:
            fail(f"nothing was added: {looked.preview.error}; --unseen adds it all the same", 1)
    with opened_store(config) as (store, _):
        name = store.source_edits.add(pipeline, said)
    if as_json:
        show_json({"name": name, "preview": looked.preview if looked else None})
        return
    if looked is not None:
        _show_preview(looked.preview)
    say(f"added {name}; it is asked within seconds where `tidings run` runs")


@source.command("edit", cls=Command)
def edit_source(
    name: NameArgument,
    config: ConfigOption = None,
    address: Annotated[str | None, typer.Option(help="Where it is now; its items stay.")] = None,
    kind: KindOption = None,
    title: TitleOption = None,
    category: CategoryOption = None,
    labels: LabelOption = None,
    interval: IntervalOption = None,
    full_text: FullTextOption = None,
    fields: FieldOption = None,
    options: SetOption = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="As by default again, such as title.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Change a source that was added here. Those of the configuration file are changed there."""
    said = _said(
        address=address,
        kind=kind,
        title=title,
        category=category,
        labels=labels,
        interval=interval,
        full_text=full_text,
        fields=fields,
        options=options,
    )
    changes = {**said, **dict.fromkeys(unset or ())}
    if not changes:
        fail("say what to change, such as --title or --interval")
    if "address" in (unset or ()):
        fail("--unset address: a source needs one")
    with opened_store(config) as (store, _):
        definition = store.source_edits.edit(name, changes)
    if as_json:
        show_json({"name": name, **msgspec.to_builtins(definition)})
    else:
        say(f"changed {name}")


@source.command("remove", cls=Command)
def remove_source(
    name: NameArgument,
    config: ConfigOption = None,
    items: Annotated[
        str | None, typer.Option(metavar="keep|forget", help="What becomes of its items; asked for where not given.")
    ] = None,
) -> None:
    """Watch a source no longer. Its items are kept, or forgotten with it."""
    with opened_store(config) as (store, _):
        fate = items or typer.prompt(f"What becomes of the items of {name} (keep, forget)", default="keep", err=True)
        if fate == "keep":
            count = store.source_edits.remove(name, items="keep")
        elif fate == "forget":
            count = store.source_edits.remove(name, items="forget")
        else:
            fail(f"--items {fate!r}: use keep or forget")
    say(f"removed {name}; its {count} items are {'kept' if fate == 'keep' else 'forgotten'}")


@source.command("test", cls=Command)
def try_source(
    address: AddressArgument,
    config: ConfigOption = None,
    pipeline: PipelineOption = "feeds",
    kind: KindOption = None,
    options: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what would be found at an address. And what would become of its newest entry; nothing is kept."""
    said = _said(address=address, kind=kind, options=options)
    looked, rehearsal = _looked(config, pipeline, said, rehearses=True)
    if as_json:
        show_json({"preview": looked.preview, "newest": rehearsal})
    else:
        _show_preview(looked.preview)
        if rehearsal is not None:
            _show_rehearsal(rehearsal)
    if looked.preview.error:
        fail(looked.preview.error, 1)


source.command("import", cls=Command)(import_sources)
source.command("export", cls=Command)(export_sources)


def _said(**given: Any) -> dict[str, Any]:
    """Return what was said of a source; what was not said stays as it is."""
    options = _pairs("--set", given.pop("options", None))
    fields = _pairs("--field", given.pop("fields", None))
    said = {key: value for key, value in given.items() if value is not None} | fields
    return {**said, "options": options} if options else said


def _pairs(option: str, given: list[str] | None) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for pair in given or ():
        key, equals, value = pair.partition("=")
        if not equals:
            fail(f"{option} {pair!r}: write NAME=VALUE")
        try:
            pairs[key] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            pairs[key] = value
    return pairs


def _looked(
    config: Path | None, pipeline: str, said: dict[str, Any], *, rehearses: bool
) -> tuple[Looked, Rehearsal | None]:
    wiring = wiring_of(config)
    declared = next((each for each in wiring.pipelines if each.name == pipeline), None)
    if declared is None:
        fail(f"pipeline {pipeline!r} is not on; on are {', '.join(p.name for p in wiring.pipelines) or 'none'}")
    try:
        return asyncio.run(_look(wiring, declared, checked_definition(said), rehearses=rehearses))
    except TidingsError as error:
        end(error)


async def _look(
    wiring: Wiring, pipeline: Pipeline, definition: SourceDefinition, *, rehearses: bool
) -> tuple[Looked, Rehearsal | None]:
    async with opened_bench(wiring, children=1) as (web, extractor, enricher):
        kit = Kit(web, extractor, enricher, MemoryLedger(), SystemClock())
        looked = await look(pipeline, definition, kit)
        if not rehearses or looked.newest is None:
            return looked, None
        return looked, await rehearse(pipeline, looked.newest, kit)


def _show_preview(preview: Preview) -> None:
    if preview.error:
        return
    say(f"{preview.title or preview.address}: {preview.found} found{f' ({preview.note})' if preview.note else ''}")
    for entry in preview.entries:
        say(f"  {(entry.at or '')[:10]:10}  {entry.title}")


def _show_rehearsal(rehearsal: Rehearsal) -> None:
    say("")
    for step in rehearsal.steps:
        say(f"  {step}")
    card = rehearsal.card or {}
    if summary := card.get("summary") or card.get("excerpt"):
        say(f"\n{summary}")
    if rehearsal.error:
        say(rehearsal.error)
