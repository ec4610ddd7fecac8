"""Puts the parts together; the only place that picks them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import secrets
import shutil
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from tidings import __version__
from tidings.discover.poller import Poller
from tidings.model.contracts import Kit
from tidings.model.errors import StoreUnavailable
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import Work
from tidings.net.client import Web
from tidings.process.enrich import Enricher
from tidings.process.enrich_endpoint import Endpoint
from tidings.process.extract import Extractor
from tidings.process.runner import Runner
from tidings.process.sweeper import Sweeper
from tidings.process.waker import Waker
from tidings.process.worker import Worker
from tidings.publish.apprise import Apprise
from tidings.publish.deliveries import delivering, with_deliveries
from tidings.publish.discord import Discord
from tidings.publish.sending import Channel, Sender
from tidings.store.database import Database, connect
from tidings.store.executor import StoreExecutor
from tidings.store.ledgers import AsyncLedger, Ledgers, StoreClock
from tidings.store.migrate import migrate
from tidings.store.presence import present
from tidings.store.store import Store, open_store
from tidings.watch.alerts import AlertLoop, Facts
from tidings.watch.logs import event, hide
from tidings.watch.memory import trim_memory
from tidings.watch.metrics import Metrics
from tidings.wiring import ChannelSpec, Nothing, Wiring, check_routes, discord_hosts

HINT_SECONDS = 0.25
COLLECT = (50_000, 20, 50)
STOP_SECONDS = 23.0
"""A process that is told to stop is gone after 25 s, whether the database answers or not."""


class App:
    """The running whole; an async context manager. Loops are started by whoever needs them."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.owner = secrets.token_hex(8)
        self.address: str | None = None
        """Where the server listens, once it does."""
        self._open = AsyncExitStack()

    async def __aenter__(self) -> App:
        wiring = self.wiring
        self.database: Database = connect(wiring.database_url, durability=wiring.durability)
        self._open.callback(self.database.close)
        try:
            if wiring.migrates:
                migrate(self.database)
            if wiring.takes_leases:
                self._be_present()
            await self._assemble(wiring)
        except BaseException:
            await self._open.aclose()
            raise
        return self

    def _be_present(self) -> None:
        taken = self._open.enter_context(present(self.database))
        if any(taken):
            event("taken over", **taken._asdict())

    async def _assemble(self, wiring: Wiring) -> None:
        self.executor = StoreExecutor(self.database)
        self._open.callback(self.executor.close)
        self.waker = Waker()
        self.metrics = Metrics(__version__)
        self.ledger = AsyncLedger(Ledgers(self.database), self.executor)
        self.clock = StoreClock(self.database)
        self.web = await self._open.enter_async_context(self._web(wiring))
        self.extractor = await self._open.enter_async_context(Extractor(children=wiring.extractor_children))
        self.kit = Kit(self.web, self.extractor, self._enricher(wiring), self.ledger, self.clock)
        self.channels = {spec.name: self._channel(spec) for spec in wiring.channels}
        sender = Sender(
            self.channels,
            self.ledger.enter,
            self.ledger.leave,
            self._pause_channel,
            self._is_channel_paused,
            ahead=self._deliveries_ahead,
            closed_for_ms=self._closed_for_ms,
            count=lambda channel, outcome: self.metrics.deliveries.labels(channel, outcome).inc(),
        )
        self.pipelines: dict[str, Pipeline] = {
            p.name: with_deliveries(p, sender) if p.announce else p for p in wiring.pipelines
        }
        check_routes(wiring)
        kinds = {spec.name: spec.kind for spec in wiring.channels}
        deliver = delivering(wiring.routes)
        self.store: Store = open_store(
            self.database,
            self.pipelines,
            on_work=self._work_came,
            deliver=deliver,
            channels=kinds,
            limiters={name: channel.rate for name, channel in self.channels.items()},
            intake_days=wiring.intake_days,
            dead_letter_days=wiring.dead_letter_days,
            journal_days=wiring.journal_days,
        )
        self.runner = Runner(self.pipelines, deliver=deliver)
        self.poller = Poller(
            pipelines=self.pipelines,
            schedules=self.store.schedules,
            intake=self.store.intake,
            executor=self.executor,
            kit=self.kit,
            owner=self.owner,
            now_ms=self.store.ledgers.now_ms,
            metrics=self.metrics,
            turn_seconds=wiring.turn_seconds,
        )
        self.sweeper = Sweeper(
            items=self.store.items,
            executor=self.executor,
            tidy=self.store.retention.tidy,
            waker=self.waker,
            metrics=self.metrics,
            sweep_seconds=wiring.sweep_seconds,
            grant_seconds=min(wiring.grant_seconds, wiring.lease_seconds),
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    async def listen(self, stop: asyncio.Event) -> None:
        """Wake this process's loops when another one has written; a hint beside polling, never more."""
        watch = self.executor.read if self.database.dialect == "sqlite" else None
        seen: int | None = None
        while not stop.is_set():
            try:
                if watch is not None:
                    version = await watch(self.database.changes)
                    if seen is not None and version != seen:
                        self.waker.wake_all()
                    seen = version
                elif await self.executor.read(self.database.wait_for_hint, HINT_SECONDS):
                    self.waker.wake_all()
                    continue
            except StoreUnavailable:
                pass  # the loops report it; the hint is not needed for correctness
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HINT_SECONDS):
                    await stop.wait()

    def worker(self, *, only_lane: str | None = None, only_pipelines: tuple[str, ...] = ()) -> Worker:
        """Make a worker over all pipelines, or some."""
        chosen = {n: p for n, p in self.pipelines.items() if not only_pipelines or n in only_pipelines}
        return Worker(
            items=self.store.items,
            intake=self.store.intake,
            runner=self.runner,
            kit=self.kit,
            executor=self.executor,
            pipelines=chosen,
            owner=self.owner,
            waker=self.waker,
            lanes=self.wiring.lanes,
            lease_seconds=self.wiring.lease_seconds,
            grant_seconds=self.wiring.grant_seconds,
            paused=self.store.ledgers.pauses,
            metrics=self.metrics,
            only_lane=only_lane,
            record=self.store.alerts.put_samples,
        )

    def alert_loop(self) -> AlertLoop:
        """Make the loop that watches our own health and tells the channels that want alerts."""
        told = [self.channels[spec.name].notifier for spec in self.wiring.channels if spec.gets_alerts]
        return AlertLoop(
            executor=self.executor,
            status=self.store.desk.status,
            channels=self.store.desk.channels,
            facts=self.facts,
            store=self.store.alerts,
            now_ms=self.store.ledgers.now_ms,
            thresholds=self.wiring.thresholds,
            notifiers=told,
            metrics=self.metrics,
        )

    def facts(self) -> Facts:
        """Gather what the alert rules ask beyond the status."""
        indexed: dict[str, tuple[int, int]] = {}
        for name, pipeline in self.pipelines.items():
            if pipeline.id_index is not None:
                indexed[name] = self.store.shelf.index_sizes(name, pipeline)
        free = None
        if self.database.dialect == "sqlite":
            usage = shutil.disk_usage(Path(self.wiring.database_url.removeprefix("sqlite:///")).resolve().parent)
            free = usage.free / usage.total
        return Facts(indexed=indexed, disk_free_share=free)

    def _web(self, wiring: Wiring) -> Web:
        addresses = [*wiring.endpoints, *([wiring.ai.base_url] if wiring.ai else [])]
        addresses += [
            Discord(spec.address, spec.name, Nothing(), hosts=discord_hosts(wiring.loopback_allowed)).origin
            for spec in wiring.channels
            if spec.kind == "discord"
        ]
        for secret in (spec.address for spec in wiring.channels):
            hide(secret)
        if wiring.ai is not None:
            hide(wiring.ai.api_key)
        return Web(
            user_agent=wiring.user_agent,
            endpoints=addresses,
            cache=_HttpCache(self.ledger),
            per_host_delay_seconds=wiring.per_host_delay_seconds,
            obey_robots=wiring.obey_robots,
            loopback_allowed=wiring.loopback_allowed,
            limits=wiring.limits,
        )

    def _enricher(self, wiring: Wiring) -> Enricher:
        if wiring.ai is None:
            return Enricher(self.ledger, clock=self.clock)
        ai = wiring.ai
        endpoint = Endpoint(self.web, base_url=ai.base_url, model=ai.model, api_key=ai.api_key, clock=self.clock)
        return Enricher(self.ledger, endpoint=endpoint, terms=ai.terms, clock=self.clock, on_tokens=self._count_tokens)

    def _count_tokens(self, model: str, tokens_in: int, tokens_out: int) -> None:
        self.metrics.tokens.labels(model, "in").inc(tokens_in)
        self.metrics.tokens.labels(model, "out").inc(tokens_out)

    def _channel(self, spec: ChannelSpec) -> Channel:
        if spec.kind == "apprise":
            return Channel(spec.name, Apprise(spec.address, spec.name), policy=spec.policy)
        notifier = Discord(
            spec.address, spec.name, self.web, hosts=discord_hosts(self.wiring.loopback_allowed), username=spec.username
        )
        return Channel(spec.name, notifier, policy=spec.policy, limiter=notifier.limiter)

    def _work_came(self) -> None:
        self.waker.wake_all()
        self.database.hint()

    async def _pause_channel(self, name: str, reason: str) -> None:
        await self.ledger.pause(f"channel:{name}", reason)

    async def _is_channel_paused(self, name: str) -> bool:
        return f"channel:{name}" in await self.ledger.pauses()

    async def _deliveries_ahead(self, work: Work) -> int:
        return await self.executor.read(self.store.items.deliveries_ahead, work.body.channel, work.item_id)

    async def _closed_for_ms(self, rate: str) -> int:
        _, closed_for_ms = await self.executor.read(self.store.ledgers.limiter, rate)
        return closed_for_ms


class _HttpCache:
    """What conditional requests remember, kept in the store."""

    def __init__(self, ledger: AsyncLedger) -> None:
        self._ledger = ledger

    async def get(self, key: str) -> bytes | None:
        """Return a value that has not expired."""
        return await self._ledger.get("http", key)

    async def put(self, key: str, value: bytes, ttl_seconds: int) -> None:
        """Keep a value for a time."""
        await self._ledger.put("http", key, value, ttl_seconds)


Loop = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


async def run_loops(loops: list[Loop], stop: asyncio.Event) -> None:
    """Run loops until `stop` is set; the first that fails stops the others. One that does not end in time is ended."""
    # What a batch makes is freed without the collector's help; looking for cycles in it took a twentieth of the time.
    gc.set_threshold(*COLLECT)
    tasks = [asyncio.create_task(loop(stop)) for loop in (*loops, trim_memory)]
    running = asyncio.gather(*tasks)
    either: set[asyncio.Future[Any]] = {running, asyncio.create_task(stop.wait())}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
    _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
    for task in late:
        task.cancel()
    if late:
        event("ended before it was done", level=logging.WARNING, loops=len(late))
        await asyncio.wait(late, timeout=1)
    with contextlib.suppress(asyncio.CancelledError):
        await running
