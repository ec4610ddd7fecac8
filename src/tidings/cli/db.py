"""`tidings db`: the schema, and what is derived from the items."""

from __future__ import annotations

import typer

from tidings.cli.help import Command, Group
from tidings.cli.options import ConfigOption, JsonOption
from tidings.cli.output import say, show_json
from tidings.cli.progress import progress_bar
from tidings.cli.store import bring_up_to_date, opened_database, opened_store, opened_stories

db = typer.Typer(
    name="db", cls=Group, help="Bring the schema up to date; rebuild what readers see.", no_args_is_help=True
)
rebuild = typer.Typer(
    name="rebuild",
    cls=Group,
    help="Write what readers see again, or items from the log.",
    no_args_is_help=True,
)
db.add_typer(rebuild)


@db.command("migrate", cls=Command)
def migrate(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Bring the schema up to date. Every command that opens the database does the same."""
    with opened_database(config) as database:
        applied = bring_up_to_date(database)
        name = database.describe()
    if as_json:
        show_json({"applied": applied})
        return
    say(f"{name}: {f'applied {applied}' if applied else 'the schema is up to date'}")


@rebuild.command("items", cls=Command)
def rebuild_items(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Read the log again and bear what is missing. Items that are there are left alone, removed ones stay removed."""
    with opened_store(config) as (store, pipelines), progress_bar("rebuilding", as_json) as show:
        totals = {name: store.rebuilder.begin_items_again(name) for name in pipelines}
        born = dict.fromkeys(pipelines, 0)
        done = 0
        for name in pipelines:
            while (merged := store.intake.merge(name)).read:
                born[name] += merged.born
                done += merged.read
                show(done, max(sum(totals.values()), done))
    if as_json:
        show_json({"read": totals, "born": born})
        return
    for name, count in born.items():
        say(f"{name}: {count:,} items born again from {totals[name]:,} findings of the log")


@rebuild.command("stories", cls=Command)
def rebuild_stories(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Group everything into stories again. In the order in which it came; what was split or joined stays so."""
    with opened_stories(config) as (store, grouping), progress_bar("grouping", as_json) as show:
        total = store.stories.begin_again()
        left = total
        while left:
            grouping()
            left = store.stories.state().waiting
            show(max(0, total - left), max(total, 1))
        count = len(store.stories.newest(1_000_000))
    if as_json:
        show_json({"items": total, "stories": count})
        return
    say(f"{total:,} items are grouped again; {count:,} stories have more than one")


@rebuild.command("index", cls=Command)
@rebuild.command("shelf", cls=Command)
def rebuild_all(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Write shelf and search index again from the items. Both are rebuilt together, whichever is named."""
    with opened_store(config) as (store, _), progress_bar("rebuilding", as_json) as show:
        total = sum(sum(view.states.values()) for view in store.status_views.status().pipelines.values())
        done = 0

        def count(items: int) -> None:
            nonlocal done
            done += items
            show(done, max(total, done))

        shown = store.rebuilder.rebuild(progress=count)
    if as_json:
        show_json({"shown": shown})
        return
    say(f"{shown} items are on the shelf and in the index again")
