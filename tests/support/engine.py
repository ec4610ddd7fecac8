"""The engine under test: real store, real loops, real HTTP to stand-ins; only the clock is ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import msgspec
from pydantic import SecretStr

from tests.support.followed_search import FollowedSearch
from tidings.app import App
from tidings.model.contracts import Hit
from tidings.model.item_views import ItemRow, ItemView
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Route
from tidings.model.query import parse
from tidings.model.views import RunView
from tidings.model.vocabulary import vocabulary_of
from tidings.process.lanes import LANES, Lane
from tidings.publish.notifiers.discord import Settings
from tidings.publish.sending import Policy
from tidings.wiring import ChannelSpec, Wiring


def discord_channel(name: str, webhook_url: str, policy: Policy = "at-least-once") -> ChannelSpec:
    """A channel as an operator would configure it."""
    return ChannelSpec(name, "discord", Settings(webhook_url=SecretStr(webhook_url), policy=policy))


class Engine:
    """One application over one database: `async with Engine(database_url, [pipeline], endpoints=[...]) as engine`.

    `loopback` names the stand-ins' (host, port) pairs that untrusted pages may come from.
    """

    def __init__(
        self,
        database_url: str,
        pipelines: Sequence[Pipeline],
        *,
        endpoints: Sequence[str] = (),
        loopback: Sequence[tuple[str, int]] = (),
        channels: Sequence[ChannelSpec] = (),
        routes: Sequence[Route] = (),
        lanes: Mapping[str, Lane] | None = None,
        **wiring: Any,
    ) -> None:
        values: dict[str, Any] = {
            "per_host_delay_seconds": 0.0,
            "obey_robots": False,
            "durability": "crash-safe",
            "lanes": {**LANES, "fetch": Lane(concurrency=8), **(lanes or {})},
        } | wiring
        self.wiring = Wiring(
            database_url=database_url,
            pipelines=tuple(pipelines),
            endpoints=tuple(endpoints),
            loopback_allowed=frozenset(loopback),
            channels=tuple(channels),
            routes=tuple(routes),
            **values,
        )
        self.offset_ms = 0

    async def __aenter__(self) -> Engine:
        self.app = App(self.wiring)
        await self.app.__aenter__()
        self.store = self.app.store
        await self.app.poller.declare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.app.__aexit__(kind, error, trace)

    async def reopen(self) -> None:
        """Close everything and open it again on the same database, as a restart would."""
        await self.app.__aexit__(None, None, None)
        await self.__aenter__()
        self.app.database.move_clock(self.offset_ms)

    def advance_clock(self, *, seconds: float) -> None:
        """Move the database's clock; every lease, schedule and wait follows it."""
        self.offset_ms += round(seconds * 1000)
        self.app.database.move_clock(self.offset_ms)

    def now_ms(self) -> int:
        """Return the database's clock."""
        return self.store.now_ms()

    async def discover(self, source: str | None = None, *, options: Mapping[str, Any] | None = None) -> list[RunView]:
        """Ask every source (or one) now, due or not; return the runs' records."""
        names = [name for name in self.store.source_list.current() if source in (None, name)]
        runs = [await self.app.poller.ask(name, force=True, options=options) for name in names]
        return [run for run in runs if run is not None]

    async def discover_due(self) -> list[RunView]:
        """Ask only the sources that are due by the database's clock."""
        names = list(self.store.source_list.current())
        runs = [await self.app.poller.ask(name) for name in names]
        return [run for run in runs if run is not None]

    async def work_until_idle(self, *, wait_for_due_seconds: float = 0.0) -> None:
        """Merge and process everything that is due now (or will be within so many seconds)."""
        await self.app.worker().until_idle(wait_for_due_seconds=wait_for_due_seconds)

    async def work_through(self, *, step_seconds: float = 3600, rounds: int = 60) -> None:
        """Work until nothing waits for time, moving the clock instead of waiting."""
        for _ in range(rounds):
            await self.work_until_idle()
            due = self.store.items.next_due_ms([p.name for p in self.wiring.pipelines], tuple(self.wiring.lanes))
            if due is None:
                return
            self.advance_clock(seconds=min(step_seconds, due / 1000 + 0.001))

    async def follow(self) -> None:
        """Let what follows the shelf catch up: the search that the server asks."""
        for loop in self.app.follow_loops():
            await loop.catch_up()

    async def sweep(self) -> Any:
        """Return expired leases."""
        return await self.app.sweeper.sweep()

    async def tidy(self) -> dict[str, int]:
        """Apply retention."""
        return await self.app.sweeper.tidy()

    def items(self, kind: str | None = None, *, state: str | None = None, limit: int = 10_000) -> list[ItemRow]:
        """List items, newest first."""
        return self.store.item_views.items(kind=kind, state=state, limit=limit)

    def states(self, kind: str) -> dict[str, int]:
        """Count items of a kind by state."""
        counts: dict[str, int] = {}
        for row in self.items(kind, limit=1_000_000):
            counts[row.state] = counts.get(row.state, 0) + 1
        return counts

    def item(self, kind: str, key: str, pipeline: str | None = None) -> ItemView:
        """Return one item, whole."""
        name = pipeline or self.wiring.pipelines[0].name
        view = self.store.item_views.find(name, kind, key)
        assert view is not None, f"no item {name} {kind} {key}"
        return view

    def card(self, collection: str, card_id: str, pipeline: str | None = None) -> dict[str, Any] | None:
        """Return a card as readers see it."""
        name = pipeline or self.wiring.pipelines[0].name
        singular = self.app.pipelines[name].collection(collection).singular
        entry = self.store.shelf.get(name, f"{singular}:{card_id}")
        return msgspec.json.decode(entry.value) if entry else None

    def cards(self, collection: str, pipeline: str | None = None, limit: int = 10_000) -> list[dict[str, Any]]:
        """Return a collection, highest sort first."""
        name = pipeline or self.wiring.pipelines[0].name
        return [msgspec.json.decode(e.value) for e in self.store.shelf.newest(name, collection, limit=limit)]

    def search(self, query: str, **options: Any) -> list[Hit]:
        """Search everything."""
        followed = FollowedSearch(self.store, self.app.pipelines, self.store.now_ms)
        vocabulary = vocabulary_of(self.app.pipelines.values(), within=options.get("pipeline"))
        return followed.search(parse(query, vocabulary, now_ms=self.store.now_ms()).root, **options).hits

    def with_wiring(self, **changes: Any) -> Engine:
        """Return a second engine over the same database with other values."""
        other = object.__new__(Engine)
        other.wiring = dataclasses.replace(self.wiring, **changes)
        other.offset_ms = self.offset_ms
        return other


def engine_of(wiring: Wiring) -> Engine:
    """Return an engine with exactly these values."""
    engine = object.__new__(Engine)
    engine.wiring = wiring
    engine.offset_ms = 0
    return engine
