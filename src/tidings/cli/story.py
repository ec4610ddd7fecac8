"""`tidings story`: the stories that several items tell, and what a person says of them."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from tidings.cli.help import Command, Group
from tidings.cli.options import ConfigOption, JsonOption
from tidings.cli.output import fail, moment, say, show_json
from tidings.cli.store import actor, opened_store
from tidings.model.errors import BadInput
from tidings.store.store import Store

story = typer.Typer(
    name="story", cls=Group, help="Stories: list them, split one or join several.", no_args_is_help=True
)


@story.command("list", cls=Command)
def list_stories(
    sources: Annotated[int, typer.Option(min=1, help="Only those that so many sources tell.")] = 1,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many at most.")] = 20,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what more than one item tells, the newest news first."""
    with opened_store(config, reads=True) as (store, _):
        rows = store.stories.newest(limit, sources=sources)
        members = store.stories.members([row.id for row in rows])
        told = [row._asdict() | {"members": [each._asdict() for each in members[row.id]]} for row in rows]
        if as_json:
            show_json(told)
            return
        for row in rows:
            say(f"story {row.id}: {row.size} items from {row.sources} sources, last {moment(row.last_ms)}")
            for each in members[row.id]:
                say(f"  item {each.item}  {each.source}: {_title(store, each.pipeline, each.key)}")
    if not rows:
        say("no story is told by more than one item")


@story.command("split", cls=Command)
def split(
    items: Annotated[list[int], typer.Argument(help="Numbers of items of one story, as `tidings story list` shows.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that items of a story tell something else. They get a story of their own, also when all is grouped again."""
    with opened_store(config) as (store, _):
        try:
            number = store.stories.split(items, actor=actor())
        except BadInput as error:
            fail(str(error))
    if as_json:
        show_json({"story": number})
        return
    say(f"story {number} is told by {'this item' if len(set(items)) == 1 else f'these {len(set(items))} items'} now")


@story.command("join", cls=Command)
def join(
    story: Annotated[int, typer.Argument(help="The story that stays.")],
    others: Annotated[list[int], typer.Argument(help="Stories that tell the same.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that other stories tell the same as one. It stays so when all is grouped again."""
    with opened_store(config) as (store, _):
        try:
            moved = store.stories.join(story, others, actor=actor())
        except BadInput as error:
            fail(str(error))
    if as_json:
        show_json({"moved": moved})
        return
    say(f"{moved} item{'' if moved == 1 else 's'} moved to story {story}")


def _title(store: Store, pipeline: str, key: str) -> str:
    entry = store.shelf.get(pipeline, key)
    card = msgspec.json.decode(entry.value) if entry is not None else {}
    return str(card.get("title") or key)[:100]
