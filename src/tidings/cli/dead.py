"""`tidings dead`: dead letters by cause; revive or purge them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from tidings.cli.help import Command, Group
from tidings.cli.options import ConfigOption, JsonOption
from tidings.cli.output import fail, moment, say, show_json, show_table
from tidings.cli.store import actor, opened_store
from tidings.model.item_views import DeadGroup
from tidings.model.vocabulary import unknown_value

PipelineOption = Annotated[str | None, typer.Option(help="Only this pipeline.")]
CauseOption = Annotated[str | None, typer.Option(help="Only this cause, as `tidings dead list` shows it.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every dead letter.")]
ItemArgument = Annotated[int | None, typer.Argument(metavar="ITEM", help="One item, by its number.")]

dead = typer.Typer(
    name="dead", cls=Group, help="Dead letters: list them by cause, revive or purge them.", no_args_is_help=False
)


@dead.callback(invoke_without_command=True)
def dead_letters(context: typer.Context, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List dead letters grouped by cause, unless told otherwise."""
    if context.invoked_subcommand is None:
        list_dead(config, as_json)


@dead.command("list", cls=Command)
def list_dead(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List dead letters grouped by cause."""
    with opened_store(config, reads=True) as (store, _):
        groups = store.item_views.dead_letters()
    if as_json:
        show_json(groups)
        return
    show_table(
        ("count", "pipeline", "kind", "state", "cause", "last", "sample"),
        [
            (g.count, g.pipeline, g.kind, g.state, g.cause, moment(g.last_at), f"{g.sample_id} {g.sample_key}")
            for g in groups
        ],
        empty="no dead letters",
    )


@dead.command("revive", cls=Command)
def revive(
    item: ItemArgument = None,
    config: ConfigOption = None,
    pipeline: PipelineOption = None,
    cause: CauseOption = None,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Bring dead letters back. One, those of a cause or pipeline, or all."""
    _refuse_nothing(item, pipeline, cause, everything, "revive")
    with opened_store(config) as (store, pipelines):
        count = store.operations.revive(item=item, pipeline=pipeline, cause=cause, actor=actor())
    _refuse_unknown(count, pipeline, pipelines)
    if item is not None and not count:
        fail(f"item {item} is no dead letter, nor parked or rejected; `tidings dead list` shows them", 1)
    if as_json:
        show_json({"revived": count})
    else:
        say(f"{count} revived")


@dead.command("purge", cls=Command)
def purge(
    item: ItemArgument = None,
    config: ConfigOption = None,
    pipeline: PipelineOption = None,
    cause: CauseOption = None,
    everything: AllOption = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Forget dead letters for good. Tombstones keep the same content from coming back; corrected items are let in."""
    _refuse_nothing(item, pipeline, cause, everything, "purge")
    with opened_store(config) as (store, pipelines):
        meant = sum(group.count for group in store.item_views.dead_letters() if _is_meant(group, pipeline, cause))
        if not yes and (item is not None or meant):
            _ask_first(f"item {item}" if item is not None else f"{meant} dead letters")
        count = store.retention.purge(item=item, pipeline=pipeline, cause=cause)
        left = sum(group.count for group in store.item_views.dead_letters() if _is_meant(group, pipeline, cause))
    _refuse_unknown(count, pipeline, pipelines)
    if item is not None and not count:
        fail(f"item {item} is no dead letter; `tidings dead list` shows them", 1)
    if as_json:
        show_json({"purged": count, "left": 0 if item is not None else left})
        return
    say(f"{count} purged")
    if item is None and left:
        say(f"{left} left: readers see an earlier copy of each; `tidings dead purge ITEM` takes one away with it")


def _ask_first(what: str) -> None:
    """Go on only if a person says so; nobody can be asked where there is no terminal."""
    if not sys.stdin.isatty():
        fail(f"{what} would be forgotten for good; add --yes")
    if not typer.confirm(f"Forget {what} for good?", err=True):
        fail("nothing was forgotten", 1)


def _is_meant(group: DeadGroup, pipeline: str | None, cause: str | None) -> bool:
    return pipeline in (None, group.pipeline) and cause in (None, group.cause)


def _refuse_unknown(count: int, pipeline: str | None, pipelines: Iterable[str]) -> None:
    if not count and (doubt := unknown_value("pipeline", pipeline, pipelines)):
        fail(doubt)


def _refuse_nothing(item: int | None, pipeline: str | None, cause: str | None, everything: bool, verb: str) -> None:
    if item is None and pipeline is None and cause is None and not everything:
        fail(f"say what to {verb}: an item's number, --cause, --pipeline, or --all")
