"""`tidings transition`: one item, moved by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.options import ConfigOption, JsonOption, KeyArgument, KindArgument, PipelineArgument
from tidings.cli.output import say, show_json
from tidings.cli.store import actor, found_item, opened_store


def transition(
    pipeline: Annotated[str, PipelineArgument],
    kind: Annotated[str, KindArgument],
    key: Annotated[str, KeyArgument],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The transition, such as mark_failed or retry_processing.")
    ],
    config: ConfigOption = None,
    reason: Annotated[str, typer.Option(help="Why; kept in the journal.")] = "by hand",
    as_json: JsonOption = False,
) -> None:
    """Perform a manual transition on one item."""
    with opened_store(config) as (store, _):
        view = found_item(store, pipeline, kind, key)
        store.operations.transition(view.item.id, name, actor=actor(), reason=reason)
        moved = found_item(store, pipeline, kind, key)
    if as_json:
        show_json(moved)
        return
    say(f"{key}: {view.item.state} -> {moved.item.state}. {moved.waits_for}")
