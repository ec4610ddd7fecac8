"""`tidings pause` and `tidings resume`: parts that stand still, and start again."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.options import ConfigOption
from tidings.cli.output import fail, say
from tidings.cli.store import opened_store

SourceOption = Annotated[str | None, typer.Option(help="A source.")]
ChannelOption = Annotated[str | None, typer.Option(help="A channel.")]


def pause(
    config: ConfigOption = None,
    pipeline: Annotated[str | None, typer.Option(help="A pipeline.")] = None,
    source: SourceOption = None,
    channel: ChannelOption = None,
    reason: Annotated[str, typer.Option(help="Why; shown in status.")] = "paused by hand",
) -> None:
    """Stop a part without losing anything."""
    with opened_store(config) as (store, _):
        for part in _parts(pipeline, source, channel):
            store.switches.pause(part, reason=reason)
            say(f"paused {part}")


def resume(
    config: ConfigOption = None,
    pipeline: Annotated[str | None, typer.Option(help="A pipeline.")] = None,
    source: SourceOption = None,
    channel: ChannelOption = None,
) -> None:
    """Start a paused part again."""
    with opened_store(config) as (store, _):
        for part in _parts(pipeline, source, channel):
            store.switches.resume(part)
            say(f"resumed {part}")


def _parts(pipeline: str | None, source: str | None, channel: str | None) -> list[str]:
    named = (("pipeline", pipeline), ("source", source), ("channel", channel))
    parts = [f"{sort}:{name}" for sort, name in named if name is not None]
    if not parts:
        fail("name a part: --pipeline, --source or --channel")
    return parts
