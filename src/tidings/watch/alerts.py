"""Alerts about our own health: once per episode, cleared with hysteresis, never through the queue they watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from tidings.model.contracts import Executor, Notifier
from tidings.model.errors import StoreReadOnly, StoreUnavailable, TidingsError
from tidings.model.publication import Notice
from tidings.model.views import ChannelView, StatusView
from tidings.watch.logs import Seldom, event
from tidings.watch.metrics import Metrics
from tidings.watch.rules import Facts, Reading, Thresholds, readings

CHECK_SECONDS = 10.0
SAMPLE_SECONDS = 60
CLEAR_SHARE = 0.8
WATCH_SECONDS = 35.0
"""How long the watch is kept without a beat; then another process takes it."""
GAP_MS = 180_000
"""Some rounds of tidying: an id index and a shelf that differ for longer will not agree by themselves."""
GAPS_MAX = 10_000


class Processes(Protocol):
    """Where processes tell that they live."""

    def put(self, process: str, role: str) -> None: ...  # noqa: D102
    def take_watch(self, process: str, seconds: float) -> bool: ...  # noqa: D102


class Episodes(Protocol):
    """Where episodes are kept."""

    def firing(self) -> Sequence[Any]: ...  # noqa: D102
    def fire(  # noqa: D102
        self, name: str, subject: str, message: str, help_text: str, value: float, threshold: float
    ) -> int: ...
    def clear(self, number: int) -> None: ...  # noqa: D102
    def take_telling(self, number: int) -> bool: ...  # noqa: D102
    def give_telling_back(self, number: int) -> None: ...  # noqa: D102
    def put_samples(self, points: Sequence[tuple[str, int, float]]) -> None: ...  # noqa: D102


class AlertLoop:
    """Asks the rules every few seconds and keeps low-resolution history for the charts."""

    def __init__(
        self,
        *,
        executor: Executor,
        status: Callable[[], StatusView],
        channels: Callable[[], list[ChannelView]],
        facts: Callable[[], Facts],
        store: Episodes,
        now_ms: Callable[[], int],
        thresholds: Thresholds,
        notifiers: Sequence[Notifier] = (),
        metrics: Metrics | None = None,
        processes: Processes | None = None,
        owner: str = "",
        role: str = "all",
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        self._executor = executor
        self._status = status
        self._channels = channels
        self._facts = facts
        self._store = store
        self._now_ms = now_ms
        self._thresholds = thresholds
        self._notifiers = notifiers
        self._metrics = metrics
        self._check_seconds = check_seconds
        self._processes = processes
        self._owner = owner
        self._role = role
        self._seldom = Seldom()
        self._requests = (0.0, 0.0)
        self._minute = (0, 0.0, 0.0)
        self._gaps: dict[tuple[str, str], int] = {}
        self._watching_since: int | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until `stop` is set."""
        while not stop.is_set():
            try:
                await self.beat()
            except StoreReadOnly as error:
                # A process that may only read serves and says nothing of itself; others watch.
                event("not watching", error=str(error))
                return
            except StoreUnavailable as error:
                self._seldom.event("store unavailable", error=str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._check_seconds):
                    await stop.wait()

    async def once(self) -> None:
        """Beat once, for a process that ends; another one need not wait until its watch runs out."""
        await self.beat()
        if self._processes is not None:
            await self._executor.write(self._processes.take_watch, self._owner, 0.0)

    async def beat(self) -> None:
        """Tell that this process lives and what its server did; watch over all where no other process does."""
        now = await self._executor.read(self._now_ms)
        if self._metrics is not None:
            await self._executor.write(self._store.put_samples, self._request_points(now))
        if self._processes is None:
            await self.check()
            return
        await self._executor.write(self._processes.put, self._owner, self._role)
        if await self._executor.write(self._processes.take_watch, self._owner, WATCH_SECONDS):
            await self.check()
        else:
            self._watching_since = None

    async def check(self) -> None:
        """Ask every rule once; open, update and end episodes; tell people of new ones."""
        status = await self._executor.read(self._status)
        channels = await self._executor.read(self._channels)
        facts = await self._executor.read(self._facts)
        now = await self._executor.read(self._now_ms)
        if self._metrics is not None:
            self._metrics.observe_status(status)
        if self._watching_since is None:
            self._watching_since = now
        watched = (now - self._watching_since) / 1000
        young = frozenset(name for name, keys in facts.gaps.items() if keys and watched * 1000 < GAP_MS)
        facts = replace(facts, gaps=self._lasting(facts.gaps, now), young_gaps=young, watched_seconds=watched)
        found = readings(status, channels, facts, self._thresholds, facts.error_share)
        await self._executor.write(self._update, found)
        await self._executor.write(self._store.put_samples, _samples(status, facts, now))
        await self._tell()

    def _update(self, found: list[Reading]) -> None:
        firing = {(f.name, f.subject): f for f in self._store.firing()}
        for reading in found:
            open_one = firing.pop((reading.name, reading.subject), None)
            if reading.value > reading.threshold:
                self._store.fire(
                    reading.name, reading.subject, reading.message, reading.help, reading.value, reading.threshold
                )
                if open_one is None:
                    event(
                        "alert fired",
                        level=logging.WARNING,
                        name=reading.name,
                        subject=reading.subject,
                        message=reading.message,
                    )
            elif open_one is not None and reading.is_sure and reading.value <= reading.threshold * CLEAR_SHARE:
                self._store.clear(open_one.id)
                event("alert cleared", name=reading.name, subject=reading.subject)
        for gone in firing.values():
            self._store.clear(gone.id)

    async def _tell(self) -> None:
        """Tell people of episodes they have not heard of; straight to the notifier, past every queue."""
        if not self._notifiers:
            return
        for firing in await self._executor.read(self._store.firing):
            if firing.notified_at is None and await self._executor.write(self._store.take_telling, firing.id):
                await self._tell_of(firing)

    async def _tell_of(self, firing: Any) -> None:
        notice = Notice(title=f"Alert: {firing.name}", text=f"{firing.message}\n{firing.help}", color=0xC0392B)
        for notifier in self._notifiers:
            try:
                await notifier.send(notice, f"alert-{firing.id}")
            except TidingsError as error:
                self._seldom.event("alert not sent", error=str(error))
                await self._executor.write(self._store.give_telling_back, firing.id)
                return

    def _lasting(self, gaps: Mapping[str, frozenset[str]], now: int) -> dict[str, frozenset[str]]:
        """Return the keys that have differed for longer than tidying takes.

        At its cap the index forgets an article with each new one, and the shelf holds it until the next tidying: some
        key nearly always differs, and none for long.
        """
        seen = [(name, key) for name, keys in gaps.items() for key in sorted(keys)[:GAPS_MAX]]
        self._gaps = {each: self._gaps.get(each, now) for each in seen}
        return {
            name: frozenset(k for (n, k), since in self._gaps.items() if n == name and now - since >= GAP_MS)
            for name in gaps
        }

    def _request_points(self, now: int) -> list[tuple[str, int, float]]:
        """Return how many requests this process answered in this minute so far, and how many of them failed."""
        assert self._metrics is not None
        total = failed = 0.0
        for family in self._metrics.requests.collect():
            for sample in family.samples:
                if sample.name.endswith("_count"):
                    total += sample.value
                    failed += sample.value if sample.labels.get("status", "").startswith("5") else 0.0
        before_total, before_failed = self._requests
        self._requests = (total, failed)
        at = now - now % (SAMPLE_SECONDS * 1000)
        minute, requests, errors = self._minute if self._minute[0] == at else (at, 0.0, 0.0)
        self._minute = minute, requests + total - before_total, errors + failed - before_failed
        counted = (("api_requests", self._minute[1]), ("api_errors", self._minute[2]))
        return [(f"{series}:all:{self._owner}", at, value) for series, value in counted if self._minute[1]]


def _samples(status: StatusView, facts: Facts, now: int) -> list[tuple[str, int, float]]:
    """Return one point a minute per series; later points of the same minute replace it."""
    at = now - now % (SAMPLE_SECONDS * 1000)
    points: list[tuple[str, int, float]] = []
    for name, view in status.pipelines.items():
        points.append((f"due:{name}", at, float(view.due)))
        points.append((f"dead:{name}", at, float(view.dead_letters)))
        points.append((f"lag:{name}", at, view.lag_seconds))
        points.append((f"items:{name}", at, float(sum(view.states.values()))))
    points += [(f"gap:{name}", at, float(len(keys))) for name, keys in facts.gaps.items()]
    return points
