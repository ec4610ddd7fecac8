"""The store, opened for one command without starting anything."""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tidings.cli.options import wiring_of
from tidings.cli.output import end, fail, moment
from tidings.follow.search.follower import SearchFollower
from tidings.follow.search.index import SearchIndex
from tidings.model.errors import Misconfigured, StoreUnavailable, TidingsError
from tidings.model.item_views import ItemView
from tidings.model.pipeline import Pipeline
from tidings.parts import follow_loop, open_search, pipelines_of, send_nothing, store_of, story_follower
from tidings.store.db.database import Database, connect
from tidings.store.db.executor import StoreExecutor
from tidings.store.store import Store
from tidings.store.upkeep.migrate import migrate
from tidings.watch import logs
from tidings.wiring import Wiring


@contextmanager
def opened_store(config: Path | None, *, reads: bool = False) -> Iterator[tuple[Store, dict[str, Pipeline]]]:
    """Open the store for one command, without starting anything; one that only reads makes no database."""
    wiring = wiring_of(config)
    pipelines = pipelines_of(wiring, send_nothing)
    with ExitStack() as opened:
        if reads and is_missing(wiring):
            # Whatever is asked of an empty folder gets the answer of an empty database.
            folder = opened.enter_context(TemporaryDirectory(prefix="tidings-"))
            wiring = replace(wiring, database_url=f"sqlite:///{folder}/tidings.db")
        database = opened.enter_context(_connected(wiring))
        bring_up_to_date(database)
        yield store_of(wiring, database, pipelines), pipelines


@contextmanager
def opened_search(config: Path | None) -> Iterator[tuple[SearchIndex, Store, dict[str, Pipeline]]]:
    """Open the search for one command: what a running process keeps up to date, or else caught up here."""
    wiring = wiring_of(config)
    if is_missing(wiring):
        wiring = replace(wiring, index_dir=None)
    with opened_store(config, reads=True) as (store, pipelines), closing(open_search(wiring)) as index:
        asyncio.run(_catch_up(index, store, pipelines))
        yield index, store, pipelines


async def _catch_up(index: SearchIndex, store: Store, pipelines: dict[str, Pipeline]) -> None:
    with closing(StoreExecutor(store.database)) as executor:
        follower = SearchFollower(index, store.changes, pipelines, executor)
        await follow_loop(follower, store, executor, "command").catch_up()


@contextmanager
def opened_stories(config: Path | None) -> Iterator[tuple[Store, Callable[[], None]]]:
    """Open the stories for one command, with a call that groups what waits."""
    spec = wiring_of(config).stories
    if spec is None:
        fail("stories are off: [stories] enabled = false", 1)
    with opened_store(config) as (store, _):

        async def group() -> None:
            with closing(StoreExecutor(store.database)) as executor:
                await story_follower(spec, store, executor, "command").group()

        yield store, lambda: asyncio.run(group())


@contextmanager
def opened_database(config: Path | None, *, must_exist: bool = False) -> Iterator[Database]:
    """Open the database as it is, without bringing its schema up to date."""
    wiring = wiring_of(config)
    if must_exist and is_missing(wiring):
        fail(f"there is no database at {wiring.database_url.removeprefix('sqlite:///')}; is this the right folder?", 1)
    with _connected(wiring) as database:
        yield database


@contextmanager
def _connected(wiring: Wiring) -> Iterator[Database]:
    """Connect, and close at the end; what goes wrong meanwhile ends the command with its message."""
    tell_waits()
    try:
        database = connect(wiring.database_url, durability=wiring.durability)
        try:
            yield database
        finally:
            database.close()
    except TidingsError as error:
        end(error)


def tell_waits() -> None:
    """Let a command that has to wait for the database say so on stderr."""
    if not logs.log.handlers:
        logs.set_up("human", logging.WARNING)


def is_missing(wiring: Wiring) -> bool:
    """Tell whether the database is a file that does not exist."""
    file = wiring.database_url.removeprefix("sqlite:///")
    return file != wiring.database_url and not Path(file).exists()


def named_item(store: Store, name: Sequence[str | None]) -> ItemView:
    """Return the item that a command names by pipeline, kind and key or by its number, or end."""
    parts = [part for part in name if part is not None]
    if len(parts) == 1 and parts[0].isdigit():
        view = store.item_views.item(int(parts[0]))
        if view is None:
            fail(f"there is no item {parts[0]}; `tidings items` lists what there is", 1)
        return view
    if len(parts) != 3:
        fail("name the item: PIPELINE KIND KEY, or its number as `tidings items` shows it")
    return found_item(store, *parts)


def found_item(store: Store, pipeline: str, kind: str, key: str) -> ItemView:
    """Return an item by its name, or end with exit code 1."""
    view = store.item_views.find(pipeline, kind, key)
    if view is None:
        removed = [each for each in store.tombstones.list(pipeline=pipeline, key=key) if each.kind == kind]
        if removed:
            since, until = moment(removed[0].buried_at), moment(removed[0].forget_at)
            why = f" ({removed[0].reason})" if removed[0].reason else ""
            lifting = f"`tidings tombstones lift {pipeline} {kind} {key}`"
            told = f"{kind} {key!r} was removed on {since}{why}"
            fail(f"{told}, and is remembered as such until {until}; {lifting} ends that", 1)
        fail(f"{pipeline} remembers no {kind} {key!r}; `tidings items --pipeline {pipeline}` lists what there is", 1)
    return view


def bring_up_to_date(database: Database) -> list[int]:
    """Apply the missing migrations; a newer or altered schema is the database's fault, not the configuration's."""
    try:
        return migrate(database)
    except Misconfigured as error:
        raise StoreUnavailable(str(error)) from None


def actor() -> str:
    """Name who acts, for the journal."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):
        return "cli"
