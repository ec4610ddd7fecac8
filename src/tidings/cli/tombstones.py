"""`tidings tombstones`: what is remembered of removed items, and how to let one in again."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.help import Command, Group
from tidings.cli.options import ConfigOption, JsonOption, PipelineArgument
from tidings.cli.output import fail, moment, say, show_json, show_table
from tidings.cli.store import opened_store

LIMIT = 100

tombstones = typer.Typer(
    name="tombstones", cls=Group, help="Tombstones of removed items: list them, or lift them.", no_args_is_help=True
)


@tombstones.command("list", cls=Command)
def list_tombstones(
    config: ConfigOption = None,
    pipeline: Annotated[str | None, typer.Option(help="Only of this pipeline.")] = None,
    key: Annotated[str | None, typer.Option(help="Only of this key.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = LIMIT,
    as_json: JsonOption = False,
) -> None:
    """List tombstones, the youngest first. The same content is not taken in again until one is forgotten."""
    with opened_store(config, reads=True) as (store, pipelines):
        _check(pipeline, list(pipelines))
        found = store.tombstones.list(pipeline=pipeline, key=key, limit=limit)
    if as_json:
        show_json(found)
        return
    rows = [
        (each.pipeline, each.kind, each.key, moment(each.buried_at), moment(each.forget_at), each.reason or "-")
        for each in found
    ]
    none = "no tombstones: nothing was removed, or it has been forgotten since"
    show_table(("pipeline", "kind", "key", "removed", "remembered until", "why"), rows, empty=none)


@tombstones.command("lift", cls=Command)
def lift(
    pipeline: Annotated[str, PipelineArgument],
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help="The kind of item.")] = None,
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="The item's key.")] = None,
    config: ConfigOption = None,
    everything: Annotated[bool, typer.Option("--all", help="All of the pipeline, or of the kind.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Forget a tombstone. The next finding of that key is taken as new, whatever it holds."""
    if key is None and not everything:
        fail("say which: KIND and KEY, or --all for every tombstone of the pipeline or kind")
    if key is not None and everything:
        fail("a KEY and --all contradict each other")
    with opened_store(config) as (store, pipelines):
        _check(pipeline, list(pipelines))
        count = store.tombstones.lift(pipeline, kind=kind, key=key)
    if key is not None and not count:
        fail(f"there is no tombstone of {pipeline} {kind} {key}; `tidings tombstones list` shows them", 1)
    if as_json:
        show_json({"lifted": count})
    else:
        say(f"{count} lifted")


def _check(pipeline: str | None, known: list[str]) -> None:
    if pipeline is not None and pipeline not in known:
        fail(f"there is no pipeline {pipeline!r}; known: {', '.join(known) or 'none'}")
