"""Alerts about our own health: once per episode, cleared with hysteresis, never through the queue they watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tidings.model.contracts import Executor, Notifier
from tidings.model.errors import StoreReadOnly, StoreUnavailable, TidingsError
from tidings.model.publication import Notice
from tidings.model.views import ChannelView, FollowerView, PipelineView, StatusView
from tidings.watch.logs import Seldom, event
from tidings.watch.metrics import Metrics

CHECK_SECONDS = 10.0
TROUBLES = {
    "refused": ("refuses us", "mend the key or the settings, then: tidings discover {pipeline} --source {source}"),
    "out of credits": ("has given us all that today holds", "wait, raise the budget, or ask less often"),
    "empty": ("answers and lists nothing any more", "tidings doctor; tidings discover {pipeline} --source {source}"),
}
"""Why a source's health fires at once, and what helps."""
SAMPLE_SECONDS = 60
CLEAR_SHARE = 0.8
HOUR_SECONDS = 3600.0
WATCH_SECONDS = 35.0
"""How long the watch is kept without a beat; then another process takes it."""
GAP_MS = 180_000
"""Some rounds of tidying: an id index and a shelf that differ for longer will not agree by themselves."""
GAPS_MAX = 10_000
REQUESTS_MIN = 20


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When each alert fires: above these values."""

    waiting_to_summarize: float = 100
    waiting_to_announce: float = 50
    dead_letters: float = 20
    dead_growth: float = 10
    leases: float = 10
    lag_seconds: float = 2 * HOUR_SECONDS
    api_error_share: float = 0.01
    budget_share: float = 0.9
    index_divergence: float = 0
    disk_used_share: float = 0.95
    follower_seconds: float = 300
    absent_seconds: float = 120


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules ask beyond the status."""

    gaps: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Per pipeline: the keys in which its id index and its shelf differ."""
    disk_free_share: float | None = None
    requests: int = 0
    """Requests to all servers in the last minutes, and how many of them failed."""
    failed: int = 0
    watched_seconds: float = 0.0
    """For how long this process has watched: one that was not seen yet may only just be starting."""

    @property
    def error_share(self) -> float:
        """The share of requests that failed; of a handful it says nothing."""
        return self.failed / self.requests if self.requests >= REQUESTS_MIN else 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One rule's value for one subject; it fires above its threshold and clears at 80 % of it."""

    name: str
    subject: str
    value: float
    threshold: float
    message: str
    help: str


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


def readings(
    status: StatusView, channels: Iterable[ChannelView], facts: Facts, limits: Thresholds, error_share: float
) -> list[Reading]:
    """Ask every rule."""
    found: list[Reading] = []
    for name, view in status.pipelines.items():
        found += _of_pipeline(name, view, limits)
    for channel in channels:
        reason = channel.reason or "paused by hand"
        found.append(
            Reading(
                "channel paused",
                channel.name,
                float(channel.paused),
                0.5,
                f"channel {channel.name} is paused: {reason}; {channel.waiting} notices wait",
                f"mend its address, then: tidings resume --channel {channel.name}",
            )
        )
    for name, keys in facts.gaps.items():
        found.append(
            Reading(
                "index divergence",
                name,
                len(keys),
                limits.index_divergence,
                f"{name}: the id index and the shelf differ for minutes in {len(keys)}: {', '.join(sorted(keys)[:5])}",
                "is a worker running, which tidies? else: tidings db rebuild shelf",
            )
        )
    found += _absences(status, facts, limits)
    found += [_of_follower(each, limits) for each in status.followers]
    if facts.disk_free_share is not None:
        used = 1 - facts.disk_free_share
        found.append(
            Reading(
                "disk nearly full",
                "disk",
                used,
                limits.disk_used_share,
                f"the disk that holds the database is {used:.0%} full",
                "free some space; nothing accepted is lost",
            )
        )
    found.append(
        Reading(
            "api errors",
            "api",
            error_share,
            limits.api_error_share,
            f"{error_share:.1%} of API requests failed in the last minutes",
            "look at the log for the failing route",
        )
    )
    return found


def _absences(status: StatusView, facts: Facts, limits: Thresholds) -> list[Reading]:
    """Ask when a worker and a poller were last seen."""
    has_sources = any(view.sources for view in status.pipelines.values())
    waiting = sum(view.intake.unmerged + view.due for view in status.pipelines.values())
    return [
        Reading(
            f"no {what}",
            what,
            _absent_seconds(status, role, facts.watched_seconds) if is_needed else 0.0,
            limits.absent_seconds,
            f"no {what} has been seen for more than {limits.absent_seconds:g} s{told}",
            f"tidings run --role {role}",
        )
        for what, role, is_needed, told in (
            ("worker", "work", bool(status.pipelines), f"; {waiting:,} findings and items wait"),
            ("poller", "discover", has_sources, "; no source is asked"),
        )
    ]


def _absent_seconds(status: StatusView, role: str, watched_seconds: float) -> float:
    seen = [each.seen_at for each in status.processes if each.role in ("all", role)]
    absent = (status.at - max(seen)) / 1000 if seen else float("inf")
    return min(absent, watched_seconds)


def _of_follower(view: FollowerView, limits: Thresholds) -> Reading:
    why = f": {view.error}" if view.error else ""
    return Reading(
        "follower behind",
        f"{view.name}@{view.process}",
        view.behind_seconds,
        limits.follower_seconds,
        f"{view.name} is {view.behind:,} changes and {view.behind_seconds:.0f} s behind{why}",
        "look at the log of that process; it catches up by itself once the cause is gone",
    )


def _of_pipeline(name: str, view: PipelineView, limits: Thresholds) -> list[Reading]:
    waiting, queued = view.phases.get("summarize", 0), view.phases.get("announce", 0)
    summarize, announce, dead = limits.waiting_to_summarize, limits.waiting_to_announce, limits.dead_letters
    found = [
        Reading("summarize queue", name, waiting, summarize, f"{waiting} items of {name} wait for a summary",
                f"tidings work --until-idle --pipeline {name}"),
        Reading("announce queue", name, queued, announce, f"{queued} notices of {name} wait to be sent",
                "tidings status; is the channel answering?"),
        Reading("dead letters", name, view.dead_letters, dead, f"{view.dead_letters} dead letters in {name}",
                "tidings dead list"),
        Reading("dead letters growing", name, view.dead_growth, limits.dead_growth,
                f"{view.dead_growth} more dead letters in {name} than an hour ago", "tidings dead list"),
        Reading("leases", name, view.leased, limits.leases, f"{view.leased} leases of {name} are held at once",
                "tidings status; are workers stuck?"),
        _lag(name, view, limits),
    ]  # fmt: skip
    if view.shelf_writes_limit:
        allowed = view.shelf_writes_limit * limits.budget_share
        found.append(
            Reading(
                "shelf writes",
                name,
                view.shelf_writes_today,
                allowed,
                f"{view.shelf_writes_today} of {view.shelf_writes_limit} shelf writes of {name} are used today",
                "raise shelf_writes_per_day, or poll less often",
            )
        )
    for budget in view.budgets:
        if budget.limit and not budget.name.startswith("shelf_writes:"):
            used = budget.spent + budget.reserved
            found.append(
                Reading(
                    "budget nearly spent",
                    budget.name,
                    used,
                    budget.limit * limits.budget_share,
                    f"{used} of today's {budget.limit} are used: {budget.name}",
                    "raise the budget, or wait for the next day (UTC)",
                )
            )
    for source in view.sources:
        silent = source.health == "silent"
        found.append(
            Reading(
                "source silent",
                source.name,
                float(silent),
                0.5,
                f"{source.name} has brought nothing new for much longer than usual",
                f"tidings discover {name} --source {source.name}",
            )
        )
        if source.health in TROUBLES:
            why, help_text = TROUBLES[source.health]
            told = source.error or (source.last_run.note if source.last_run is not None else None)
            found.append(
                Reading(
                    f"source {source.health}",
                    source.name,
                    1.0,
                    0.5,
                    f"{source.name} {why}" + (f": {told}" if told else ""),
                    help_text.format(pipeline=name, source=source.name),
                )
            )
        cut_off = source.last_run.note if source.last_run is not None else None
        found.append(
            Reading(
                "source incomplete",
                source.name,
                source.incomplete_runs,
                2.5,
                f"{source.name} was cut off {source.incomplete_runs} times in a row: {cut_off}",
                "ask it more often (every), raise max_pages, or take a larger plan",
            )
        )
        failing = source.failures if source.health == "failing" else 0
        found.append(
            Reading(
                "source failing",
                source.name,
                failing,
                2.5,
                f"{source.name} failed {failing} times: {source.error}",
                f"tidings discover {name} --source {source.name}",
            )
        )
    return found


def _lag(name: str, view: PipelineView, limits: Thresholds) -> Reading:
    """Ask how long the oldest finding or item has waited; what is parked or tried again and again counts."""
    slow = {phase: seconds for phase, seconds in view.lags.items() if seconds > limits.lag_seconds} or view.lags
    longest = sorted(slow.items(), key=lambda pair: -pair[1])
    phases = ", ".join(f"{phase} {seconds / HOUR_SECONDS:.1f} h" for phase, seconds in longest)
    paused = "; the pipeline is paused" if view.paused else ""
    return Reading(
        "processing lag",
        name,
        view.lag_seconds,
        limits.lag_seconds,
        f"{name} is not getting on; the oldest have waited: {phases}{paused}",
        f"tidings resume --pipeline {name}" if view.paused else f"tidings status; tidings items --pipeline {name}",
    )


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
        facts = replace(facts, gaps=self._lasting(facts.gaps, now), watched_seconds=watched)
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
            elif open_one is not None and reading.value <= reading.threshold * CLEAR_SHARE:
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
