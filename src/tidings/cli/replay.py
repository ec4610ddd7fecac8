"""`tidings replay`: items processed again from a state."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from tidings.cli.options import ConfigOption, JsonOption, PipelineArgument
from tidings.cli.output import fail, say, show_json
from tidings.cli.store import actor, opened_store
from tidings.model.item_views import Replayed


def replay(
    pipeline: Annotated[str, PipelineArgument],
    config: ConfigOption = None,
    from_state: Annotated[
        str | None, typer.Option("--from", metavar="STATE", help="Where to begin; default the start.")
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="QUERY", help="Only what this query finds.")] = None,
    item: Annotated[int | None, typer.Option(metavar="ITEM", help="Only this item, by its number.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every item of the pipeline.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, and tell the price.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask where it costs something.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Process items again from a state. After a change of prompt, model or code."""
    if not (everything or dry_run or from_state or where or item is not None):
        fail("say which: --item, --where, --from, or --all; --dry-run counts them first")
    with opened_store(config) as (store, _):
        meant: dict[str, Any] = {"state": from_state, "query": where, "actor": actor(), "item": item}
        done = price = store.operations.replay(pipeline, **meant, dry_run=True)
        if not dry_run:
            if price.tokens and not yes:
                _ask_first(price)
            done = store.operations.replay(pipeline, **meant, dry_run=False)
    if as_json:
        cost = {"calls": price.calls, "tokens": price.tokens, "cost": price.cost_micros / 1e6}
        show_json({"items": done.items, "skipped": done.skipped, "dry_run": dry_run, **cost})
        return
    if dry_run:
        say(spoken_price(price))
    say(f"{done.items} items {'would be' if dry_run else 'will be'} processed again from {from_state or 'the start'}")
    if done.skipped:
        say(f"{done.skipped} never came past {from_state}, and {'would be' if dry_run else 'were'} left alone")


def spoken_price(price: Replayed) -> str:
    """Say what processing items again costs."""
    money = f", $ {price.cost_micros / 1e6:.4f}" if price.cost_micros else ""
    asked = (
        f"{price.calls:,} questions to the AI endpoint, {price.tokens:,} tokens{money}" if price.tokens else "no tokens"
    )
    return f"price: {asked}, as their last time took; notices only of what changes"


def _ask_first(price: Replayed) -> None:
    """Go on only if a person says so; nobody can be asked where there is no terminal."""
    told = f"{price.items} items would be processed again; {spoken_price(price)}"
    if not sys.stdin.isatty():
        fail(f"{told}; add --yes")
    if not typer.confirm(f"{told}. Go on?", err=True):
        fail("nothing was processed again", 1)
