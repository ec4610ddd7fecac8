"""`tidings replay`: items processed again from a state."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.options import ConfigOption, JsonOption, PipelineArgument
from tidings.cli.output import fail, say, show_json
from tidings.cli.store import actor, opened_store


def replay(
    pipeline: Annotated[str, PipelineArgument],
    config: ConfigOption = None,
    from_state: Annotated[
        str | None, typer.Option("--from", metavar="STATE", help="Where to begin; default the start.")
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="QUERY", help="Only what this query finds.")] = None,
    item: Annotated[int | None, typer.Option(metavar="ITEM", help="Only this item, by its number.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every item of the pipeline.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Process items again from a state. After a change of prompt, model or code."""
    if not (everything or dry_run or from_state or where or item is not None):
        fail("say which: --item, --where, --from, or --all; --dry-run counts them first")
    with opened_store(config) as (store, _):
        done = store.operations.replay(
            pipeline, state=from_state, query=where, actor=actor(), dry_run=dry_run, item=item
        )
    if as_json:
        show_json({"items": done.items, "skipped": done.skipped, "dry_run": dry_run})
        return
    say(f"{done.items} items {'would be' if dry_run else 'will be'} processed again from {from_state or 'the start'}")
    if done.skipped:
        say(f"{done.skipped} never came past {from_state}, and {'would be' if dry_run else 'were'} left alone")
