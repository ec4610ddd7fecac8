"""`tidings transition`: one item, moved by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.options import ConfigOption, JsonOption
from tidings.cli.output import say, show_json
from tidings.cli.store import actor, named_item, opened_store


def transition(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="ITEM NAME",
            help="The item, as PIPELINE KIND KEY or its number; then the transition, such as mark_failed.",
        ),
    ],
    config: ConfigOption = None,
    reason: Annotated[str, typer.Option(help="Why; kept in the journal.")] = "by hand",
    as_json: JsonOption = False,
) -> None:
    """Perform a manual transition on one item."""
    *item, name = what
    with opened_store(config) as (store, _):
        view = named_item(store, item)
        store.operations.transition(view.item.id, name, actor=actor(), reason=reason)
        moved = named_item(store, item)
    if as_json:
        show_json(moved)
        return
    say(f"{view.item.key}: {view.item.state} -> {moved.item.state}. {moved.waits_for}")
