"""A server's ground without a database: shelf, links and newest cards out of a mirror."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from tidings import __version__
from tidings.config import Settings, pipeline_modules
from tidings.follow.mirrors.names import MirroredPipeline, mirrored, names_for
from tidings.follow.mirrors.neighbors import CardLinks, NewestCards
from tidings.follow.mirrors.shelf import Catalogs, LiveCatalogs, MirrorShelf
from tidings.follow.mirrors.target import Target
from tidings.model.errors import Misconfigured, TidingsError
from tidings.model.pipeline import Pipeline
from tidings.publish.deliveries import DELIVERIES
from tidings.serve.backend import ReadBackend
from tidings.watch.metrics import Metrics

T = TypeVar("T")
READERS = 8


class ThreadExecutor:
    """Carries synchronous calls off the event loop; there is nothing to write."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="mirror")

    async def read(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(call, *args, **kwargs))

    write = read

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False)


class GivenToken:
    """The one token that a process without a database was started with; it may read."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def scope_of(self, token: str) -> str | None:
        """Return `read` for the token."""
        is_ours = self._token is not None and secrets.compare_digest(token.encode(), self._token.encode())
        return "read" if is_ours else None

    def reader_of(self, _token: str) -> str | None:
        """Return None: a mirror holds no marks."""
        return None

    def note_use(self, token: str) -> None:
        """Note nothing: there is no place for it."""

    def are_there(self) -> bool:
        """Tell whether there is one."""
        return self._token is not None


def read_backend(
    target: Target,
    pipelines: Mapping[str, Pipeline],
    executor: ThreadExecutor,
    *,
    catalogs: Catalogs | None = None,
    token: str | None = None,
    **values: Any,
) -> ReadBackend:
    """Give a server what it reads: what a mirror holds of these pipelines."""
    plans = {name: whole_plan(pipeline) for name, pipeline in pipelines.items()}
    shelf = MirrorShelf(target, catalogs or LiveCatalogs(target), plans, asyncio.get_running_loop())
    metrics = Metrics(__version__)
    return ReadBackend(
        pipelines=pipelines,
        executor=executor,
        shelf=shelf,
        search=NewestCards(shelf, pipelines),
        links=CardLinks(shelf, pipelines),
        tokens=GivenToken(token),
        metrics=metrics.render,
        ready=partial(_problems, shelf, list(pipelines)),
        observe=metrics.observe_request,
        version=__version__,
        **values,
    )


def whole_plan(pipeline: Pipeline) -> MirroredPipeline:
    """Return how everything of a pipeline is called in a mirror, whether the mirror has it or not."""
    chosen = [*pipeline.collections, *([DELIVERIES] if pipeline.announce else [])]
    return MirroredPipeline(pipeline.name, {each.name: mirrored(each) for each in chosen})


async def mirrored_pipelines(target: Target, settings: Settings) -> dict[str, Pipeline]:
    """Return the declarations of what a mirror holds: as configured here, or with every setting at its default."""
    names = names_for(target)
    catalogs, found = LiveCatalogs(target), {}
    for name in names.pipelines(await target.keys(names.catalogs)):
        held = set((await catalogs.current(name)).cards)
        found[name] = narrowed(_declared(name, settings), held)
    if not found:
        raise Misconfigured(f"{target.place} holds no mirror yet; [mirrors.<name>] and `tidings run` fill one")
    return found


def _declared(name: str, settings: Settings) -> Pipeline:
    modules = pipeline_modules()
    if name not in modules:
        raise Misconfigured(f"the mirror holds the pipeline {name!r}, which is not installed here")
    chosen = settings.pipelines.get(name)
    try:
        pipeline: Pipeline = modules[name].build(chosen if chosen is not None else modules[name].Settings())
    except ValueError:
        raise Misconfigured(f"the mirror holds {name}: give its [pipelines.{name}] with --config") from None
    return pipeline


def narrowed(pipeline: Pipeline, held: Collection[str]) -> Pipeline:
    """Declare only what the mirror holds; without its deliveries nothing can be said of announcements."""
    announce = pipeline.announce if DELIVERIES.name in held else {}
    chosen = tuple(each for each in pipeline.collections if each.name in held)
    # A mirror holds no ranked lists: they change every minute, and each write may cost.
    return replace(pipeline, announce=announce, collections=chosen, lists=())


def _problems(shelf: MirrorShelf, pipelines: list[str]) -> dict[str, str]:
    try:
        for name in pipelines:
            if shelf.version(name) == 0:
                return {"mirror": f"it holds nothing of {name} yet"}
    except TidingsError as error:
        return {"mirror": str(error)}
    return {}
