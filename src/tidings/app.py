"""Puts the parts together: the only place that picks them, and nothing else is done here."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import cached_property
from types import TracebackType

from tidings import __version__
from tidings.config import notifier_modules
from tidings.discover.poller import Poller
from tidings.follow.follower import FollowLoop
from tidings.follow.replica.copier import Copier
from tidings.follow.search.follower import SearchFollower
from tidings.follow.search.index import SearchIndex
from tidings.mirroring import opened_mirror
from tidings.model.clock import Clock
from tidings.model.contracts import Executor, Kit
from tidings.model.item import ref
from tidings.model.publication import DELIVERY
from tidings.model.workflow import Work
from tidings.net.cache import LedgerCache
from tidings.net.client import Web
from tidings.parts import SourcePreviews, enricher_of, follow_loop, open_search, pipelines_of, store_of, story_loop
from tidings.process.extract.extractor import ChildExtractor
from tidings.process.loops import Loop
from tidings.process.runner import Runner
from tidings.process.sweeper import Sweeper
from tidings.process.waker import Waker
from tidings.process.worker import Worker
from tidings.publish.deliveries import delivering
from tidings.publish.digests import MEMBERS_MAX, GatheredDelivery
from tidings.publish.sending import Channel, Sender
from tidings.publish.texts import texts_of
from tidings.store.db.database import Database, connect
from tidings.store.db.executor import StoreExecutor
from tidings.store.db.hints import Hints
from tidings.store.db.presence import present
from tidings.store.db.reader_circuit import ReaderCircuit
from tidings.store.db.wal import copy_log
from tidings.store.ledger import StoreLedger
from tidings.store.upkeep.health import DatabaseHealth
from tidings.store.upkeep.migrate import migrate
from tidings.watch.alerts import AlertLoop
from tidings.watch.logs import event, hide
from tidings.watch.metrics import Metrics
from tidings.wiring import Wiring, channel_endpoints, check_routes, hide_secrets, why_off


class App:
    """All the parts of one process, opened and closed together. Nothing runs until a command starts its loops."""

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
        self.ledger = StoreLedger(self.database, self.executor)
        self.clock: Clock = self.database
        self.web = await self._open.enter_async_context(self._web(wiring))
        self.extractor = await self._open.enter_async_context(ChildExtractor(children=wiring.extractor_children))
        enricher = enricher_of(wiring, self.web, self.ledger, self.clock, on_tokens=self._count_tokens)
        self.kit = Kit(self.web, self.extractor, enricher, self.ledger, self.clock)
        self.channels = {channel.name: channel for channel in self._channels(wiring)}
        sender = Sender(
            self.channels,
            self.ledger.enter,
            self.ledger.leave,
            self._pause_channel,
            self._is_channel_paused,
            older=self._older_deliveries,
            closed_for_ms=self._closed_for_ms,
            open_digest=self._open_digest,
            gathered=self._gathered_deliveries,
            texts={route.name: route.texts for route in wiring.routes},
            count=lambda channel, outcome: self.metrics.deliveries.labels(channel, outcome).inc(),
        )
        self.pipelines = pipelines_of(wiring, sender)
        check_routes(wiring)
        _tell_what_rests(wiring)
        limiters = {name: channel.rate for name, channel in self.channels.items()}
        self.store = store_of(wiring, self.database, self.pipelines, on_work=self._work_came, limiters=limiters)
        if wiring.takes_leases:
            self._recover_lost()
        self.runner = Runner(self.pipelines, deliver=delivering(wiring.routes, wiring.pipelines))
        self.previews = SourcePreviews(self.pipelines, self.kit)
        self.poller = Poller(
            sources=self.store.source_list,
            schedules=self.store.schedules,
            intake=self.store.intake,
            executor=self.executor,
            kit=self.kit,
            owner=self.owner,
            now_ms=self.store.now_ms,
            wishes=self.store.wishes,
            turn_seconds=wiring.turn_seconds,
        )
        self.sweeper = Sweeper(
            items=self.store.items,
            executor=self.executor,
            tidy=self.store.tidy,
            waker=self.waker,
            metrics=self.metrics,
            sweep_seconds=wiring.sweep_seconds,
            grant_seconds=min(wiring.grant_seconds, wiring.lease_seconds),
        )
        self.health = DatabaseHealth(self.store, self.executor, self.pipelines, file=self.database.file)
        self.hints = Hints(self.database, self.executor, self.waker.wake_all)

    def _recover_lost(self) -> None:
        """Let items be born again that the database has lost while the log still holds them."""
        if lost := self.store.rebuilder.recover_lost():
            event("items were lost", level=logging.WARNING, pipelines=", ".join(lost), help="the log is merged again")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    def worker(self, *, only_lane: str | None = None, only_pipelines: tuple[str, ...] = ()) -> Worker:
        """Make a worker over all pipelines, or some."""
        chosen = {n: p for n, p in self.pipelines.items() if not only_pipelines or n in only_pipelines}
        return Worker(
            items=self.store.items,
            log=self.store.intake,
            runner=self.runner,
            kit=self.kit,
            executor=self.executor,
            pipelines=chosen,
            owner=self.owner,
            waker=self.waker,
            lanes=self.wiring.lanes,
            lease_seconds=self.wiring.lease_seconds,
            grant_seconds=self.wiring.grant_seconds,
            paused=self.store.pauses.reasons,
            metrics=self.metrics,
            only_lane=only_lane,
            record=self.store.alerts.put_samples,
            record_run=self.store.work_runs.put,
            shares=self.wiring.shares,
            starting=self.store.limiters.starting,
        )

    @cached_property
    def search(self) -> SearchIndex:
        """The search index of this machine; a process that asks for none opens none."""
        index = open_search(self.wiring)
        self._open.callback(index.close)
        return index

    @cached_property
    def reader_circuit(self) -> Executor:
        """How the server reads. A SQLite file is not away: there is nothing to ask for."""
        if self.database.file is not None:
            return self.executor
        circuit = ReaderCircuit(self.executor, self.database)
        self._open.callback(circuit.close)
        return circuit

    def follow_loops(self) -> list[FollowLoop]:
        """Make the loops that derive what follows the shelf."""
        follower = SearchFollower(self.search, self.store.changes, self.pipelines, self.executor)
        loops = [follow_loop(follower, self.store, self.executor, self.owner, note=self.store.follower_notes.put)]
        if self.wiring.stories is not None:
            loops.append(story_loop(self.wiring.stories, self.store, self.executor, self.owner, self.wiring.routes))
        return loops

    async def mirror_loops(self) -> list[Loop]:
        """Open the mirrors; return the loops that follow the stream into them, and those that write what is due."""
        loops: list[Loop] = []
        for spec in self.wiring.mirrors:
            opening = opened_mirror(spec, self.pipelines, self.ledger, self.clock, self.web)
            mirror = await self._open.enter_async_context(opening)
            following = follow_loop(
                mirror,
                self.store,
                self.executor,
                self.owner,
                note=self.store.follower_notes.put,
                pipelines=mirror.pipelines,
            )
            loops += [following.run, mirror.run]
        return loops

    def copy_loops(self) -> list[Loop]:
        """Make the loop that keeps a copy of the SQLite file, where one is wanted."""
        place, file = self.wiring.replica, self.database.file
        if place is None or file is None:
            return []
        notes, executor = self.store.replica_notes, self.executor
        put = self.store.follower_notes.put
        copier = Copier(file, place, owner=self.owner, executor=executor, note=put, places=notes, copy_log=copy_log)
        return [copier.run]

    def alert_loop(self, role: str = "all") -> AlertLoop:
        """Make the loop that tells that this process lives and, in one process of all, watches our own health."""
        notifiers = [self.channels[spec.name].notifier for spec in self.wiring.channels if spec.settings.alerts]
        return AlertLoop(
            executor=self.executor,
            status=self.store.status_views.status,
            channels=self.store.status_views.channels,
            facts=self.health.facts,
            store=self.store.alerts,
            now_ms=self.store.now_ms,
            thresholds=self.wiring.thresholds,
            notifiers=notifiers,
            processes=self.store.process_notes,
            owner=self.owner,
            role=role,
            metrics=self.metrics,
        )

    def _web(self, wiring: Wiring) -> Web:
        addresses = [*wiring.endpoints, *([wiring.ai.base_url] if wiring.ai else []), *channel_endpoints(wiring)]
        for spec in wiring.channels:
            hide_secrets(spec.settings)
        if wiring.ai is not None:
            hide(wiring.ai.api_key)
        return Web(
            user_agent=wiring.user_agent,
            endpoints=addresses,
            cache=LedgerCache(self.ledger),
            per_host_delay_seconds=wiring.per_host_delay_seconds,
            obey_robots=wiring.obey_robots,
            loopback_allowed=wiring.loopback_allowed,
            limits=wiring.limits,
        )

    def _count_tokens(self, model: str, tokens_in: int, tokens_out: int) -> None:
        self.metrics.tokens.labels(model, "in").inc(tokens_in)
        self.metrics.tokens.labels(model, "out").inc(tokens_out)

    def _channels(self, wiring: Wiring) -> Iterator[Channel]:
        modules = notifier_modules()
        for spec in wiring.channels:
            notifier = modules[spec.kind].build(spec.settings, spec.name, self.web, wiring.loopback_allowed)
            yield Channel(
                spec.name,
                notifier,
                policy=spec.settings.policy,
                limiter=getattr(notifier, "limiter", ""),
                limit=getattr(notifier, "per_minute", 30),
                texts=texts_of(spec.settings.texts),
            )

    def _work_came(self) -> None:
        self.waker.wake_all()
        self.database.hint()

    async def _pause_channel(self, name: str, reason: str) -> None:
        await self.ledger.pause(f"channel:{name}", reason)

    async def _is_channel_paused(self, name: str) -> bool:
        return f"channel:{name}" in await self.ledger.pauses()

    async def _older_deliveries(self, work: Work) -> int:
        return await self.executor.read(self.store.items.deliveries_before, work.body.channel, work.item_id)

    async def _open_digest(self, pipeline: str, prefix: str) -> str | None:
        return await self.executor.read(self.store.items.open_digest, pipeline, prefix)

    async def _gathered_deliveries(self, work: Work) -> list[GatheredDelivery]:
        digest = ref(DELIVERY, work.key)
        rows = await self.executor.read(self.store.items.gathered_deliveries, work.pipeline, digest, MEMBERS_MAX)
        return [GatheredDelivery(row.key, bytes(row.body)) for row in rows]

    async def _closed_for_ms(self, rate: str) -> int:
        return (await self.executor.read(self.store.limiters.usage, rate)).closed_for_ms


def _tell_what_rests(wiring: Wiring) -> None:
    """Log what the configuration mentions and this process leaves alone."""
    for route in wiring.resting_routes:
        off = f"pipelines.{route.pipeline}.enabled is false"
        event("route rests", pipeline=route.pipeline, channel=route.channel, reason=off)
    for name in wiring.without_table:
        event("pipeline is off", pipeline=name, reason=why_off(name, wiring))
