"""Single parts made of values, for the whole process in `app.py` and for commands that need only some."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tidings.discover.preview import look
from tidings.follow.follower import FollowLoop, Note
from tidings.follow.search.index import SearchIndex
from tidings.follow.stories.follower import StoryFollower, StoryLoop
from tidings.model.changes import Follower
from tidings.model.clock import Clock, SystemClock
from tidings.model.contracts import Kit, Ledger
from tidings.model.errors import BadInput, Misconfigured
from tidings.model.outcome import Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.previews import Trial
from tidings.model.publication import Route
from tidings.model.source_definition import checked_definition
from tidings.model.workflow import Processor, Work
from tidings.net.client import Web
from tidings.process.enrich.endpoint import Endpoint
from tidings.process.enrich.enricher import MeteredEnricher
from tidings.process.extract.extractor import ChildExtractor
from tidings.process.memory_ledger import MemoryLedger
from tidings.process.rehearsal import rehearse
from tidings.publish.deliveries import delivering, with_deliveries
from tidings.store.db.database import Database
from tidings.store.db.executor import StoreExecutor
from tidings.store.store import Store, open_store
from tidings.story_notices import StoryAnnouncer
from tidings.watch.logs import event
from tidings.wiring import StorySpec, Wiring

PREVIEWS_AT_ONCE_MAX = 4


def pipelines_of(wiring: Wiring, send: Processor) -> dict[str, Pipeline]:
    """Return the pipelines by name; one that announces something gets the kind of its deliveries."""
    return {p.name: with_deliveries(p, send) if p.announce else p for p in wiring.pipelines}


def open_search(wiring: Wiring) -> SearchIndex:
    """Open the search index; where its folder cannot be used, one in memory, which is built at every start."""
    try:
        return SearchIndex(wiring.index_dir)
    except OSError as error:
        event("search index is in memory", level=logging.WARNING, folder=str(wiring.index_dir), error=str(error))
        return SearchIndex(None)


def follow_loop(
    follower: Follower,
    store: Store,
    executor: StoreExecutor,
    owner: str,
    *,
    note: Note | None = None,
    pipelines: Sequence[str] | None = None,
) -> FollowLoop:
    """Make the loop that drives a follower over all pipelines of a store, or some."""
    chosen = tuple(store.pipelines if pipelines is None else pipelines)
    return FollowLoop(follower, store.changes, executor, chosen, owner, store.now_ms, note)


def story_follower(spec: StorySpec, store: Store, executor: StoreExecutor, owner: str) -> StoryFollower:
    """Make what groups the items of a store."""
    return StoryFollower(store.stories, store.changes, store.pipelines, executor, owner, spec.also)


def story_loop(
    spec: StorySpec, store: Store, executor: StoreExecutor, owner: str, routes: Sequence[Route] = ()
) -> StoryLoop:
    """Make the loop that groups what tells the same event."""
    follower = story_follower(spec, store, executor, owner)
    if told := [route for route in routes if route.stories]:
        follower.announcer = StoryAnnouncer(store, told, store.pipelines)
    names = tuple(store.pipelines)
    return StoryLoop(follower, store.changes, executor, names, owner, store.now_ms, store.follower_notes.put)


async def send_nothing(work: Work, kit: Kit) -> Outcome:  # noqa: ARG001  # a processor's form
    """Stand where the sender does, for commands that look at deliveries and start no worker."""
    raise Misconfigured("this command sends nothing; a worker does")


def store_of(wiring: Wiring, database: Database, pipelines: dict[str, Pipeline], **more: Any) -> Store:
    """Open the store over a database."""
    return open_store(
        database,
        pipelines,
        deliver=delivering(wiring.routes, wiring.pipelines),
        channels={spec.name: spec.kind for spec in wiring.channels},
        intake_days=wiring.intake_days,
        dead_letter_days=wiring.dead_letter_days,
        journal_days=wiring.journal_days,
        **more,
    )


def enricher_of(wiring: Wiring, web: Web, ledger: Ledger, clock: Clock, **more: Any) -> MeteredEnricher:
    """Return what answers: the AI endpoint where one is configured, else the local default."""
    ai = wiring.ai
    if ai is None:
        return MeteredEnricher(ledger, clock=clock)
    endpoint = Endpoint(web, base_url=ai.base_url, model=ai.model, api_key=ai.api_key, clock=clock)
    return MeteredEnricher(ledger, endpoint=endpoint, terms=ai.terms, clock=clock, **more)


@asynccontextmanager
async def opened_bench(wiring: Wiring, *, children: int) -> AsyncIterator[tuple[Web, ChildExtractor, MeteredEnricher]]:
    """Open only the parts that read and judge, without a database: what they learn is forgotten at the end."""
    web = Web(
        user_agent=wiring.user_agent,
        endpoints=[wiring.ai.base_url] if wiring.ai else [],
        obey_robots=wiring.obey_robots,
        loopback_allowed=wiring.loopback_allowed,
    )
    async with web, ChildExtractor(children=children) as extractor:
        yield web, extractor, enricher_of(wiring, web, MemoryLedger(), SystemClock())


class SourcePreviews:
    """Looks at addresses on demand, a few at a time."""

    def __init__(self, pipelines: Mapping[str, Pipeline], kit: Kit) -> None:
        self._pipelines = pipelines
        self._kit = kit
        self._places = asyncio.Semaphore(PREVIEWS_AT_ONCE_MAX)

    async def look(self, pipeline: str, raw: Mapping[str, Any]) -> Trial:
        """Show what would be found, and what would become of the newest of it."""
        declared = self._pipelines.get(pipeline)
        if declared is None:
            raise BadInput(f"pipeline: {pipeline[:100]!r} is not on; on are {', '.join(self._pipelines) or 'none'}")
        definition = checked_definition(raw)
        async with self._places:
            looked = await look(declared, definition, self._kit)
            newest = await rehearse(declared, looked.newest, self._kit) if looked.newest is not None else None
        return Trial(looked.preview, newest)
