"""`tidings items`: the items, newest first."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.options import ConfigOption, JsonOption
from tidings.cli.output import console, fail, say, show_json, show_table
from tidings.cli.store import opened_store
from tidings.model.item import STANDINGS
from tidings.model.item_views import ItemRow
from tidings.model.vocabulary import unknown_item_values, unknown_value

WIDE = 140
"""From how many columns on a terminal shows items as a table."""


def items(
    config: ConfigOption = None,
    pipeline: Annotated[str | None, typer.Option(help="Only this pipeline.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    state: Annotated[str | None, typer.Option(help="Only this state.")] = None,
    standing: Annotated[str | None, typer.Option(help="Only open, done, waits, parked, dead or rejected ones.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List items, newest first."""
    with opened_store(config, reads=True) as (store, pipelines):
        rows = store.item_views.items(pipeline=pipeline, kind=kind, state=state, standing=standing, limit=limit)
    if not rows and (doubts := unknown_item_values(pipelines, pipeline, kind, state)):
        fail("; ".join(doubts))
    if not rows and (doubt := unknown_value("standing", standing, STANDINGS)):
        fail(doubt)
    if as_json:
        show_json(rows)
        return
    if rows and console.width < WIDE:
        _show_narrow(rows)
        return
    chosen = any(value is not None for value in (pipeline, kind, state, standing))
    show_table(
        ("id", "pipeline", "kind", "key", "state", "standing", "title", "error"),
        [(r.id, r.pipeline, r.kind, r.key, r.state, r.standing, r.title[:60], (r.last_error or "")[:60]) for r in rows],
        empty="no item fits; leave an option out to see more"
        if chosen
        else "no items yet; `tidings discover PIPELINE` finds some, `tidings work --until-idle` processes them",
    )


def _show_narrow(rows: list[ItemRow]) -> None:
    """Give each item lines of its own where a table would be folded beyond recognition."""
    for row in rows:
        say(f"{row.id}  {row.title}\n    {row.state}, {row.standing}  [{row.pipeline} {row.kind} {row.key}]")
        if row.last_error:
            say(f"    {row.last_error}")
