"""Everything at a glance: pipelines, sources, channels, alerts and their history."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from tidings.model.pipeline import Defined, Pipeline, PlacedSource
from tidings.model.publication import DELIVERY, delivery_keys
from tidings.model.urls import shown_url
from tidings.model.views import AlertView, ChannelView, IntakeView, PipelineView, Point, SourceView, StatusView
from tidings.store.db.database import Database, read_clock, standby_lag_seconds
from tidings.store.followers import FollowerNotes
from tidings.store.limits import BudgetStore, LimiterStore
from tidings.store.log import IntakeLog
from tidings.store.operator.queues import MERGE, ItemCount, Standing, dead_by_transition, lags, phases, queues
from tidings.store.operator.source_health import describe, health_of
from tidings.store.pauses import PauseStore
from tidings.store.processes import ProcessNotes
from tidings.store.source_list import SourceList
from tidings.store.sources import ScheduleRow, ScheduleStore
from tidings.store.work_runs import WorkRunStore

HOUR_MS = 3_600_000
NOTED_MS = 300_000
"""How long a note of the watch counts for the present."""
COUNT_SHARE = 0.1
"""What of the time may go into counting items, where looking is frequent and the table big."""
QUICK_SECONDS, STALE_SECONDS_MAX = 0.05, 30.0

SUMMED = ("settled:", "published:", "api_requests:", "api_errors:")
"""What every process counts for itself."""


class StatusReader:
    """Counts and summaries; reads only."""

    def __init__(
        self,
        database: Database,
        pipelines: Mapping[str, Pipeline],
        *,
        intake: IntakeLog,
        schedules: ScheduleStore,
        source_list: SourceList,
        channels: Mapping[str, str],
        limiters: Mapping[str, str],
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._intake = intake
        self._budgets = BudgetStore(database)
        self._rates = LimiterStore(database)
        self._pauses = PauseStore(database)
        self._followers = FollowerNotes(database)
        self._processes = ProcessNotes(database)
        self._work_runs = WorkRunStore(database)
        self._schedules = schedules
        self._source_list = source_list
        self._channels = channels
        self._limiters = limiters
        self._stopwatch = stopwatch
        self._counts_until = float("-inf")
        self._counted: tuple[list[ItemCount], dict[str, IntakeView]] = ([], {})

    def status(self) -> StatusView:
        """Return everything at a glance."""
        with self._database.reading() as tx:
            now: int = tx.value("now")
        counts, logs = self._counts()
        paused = self._pauses.reasons()
        budgets = self._budgets.today()
        sources = self.sources()
        views = {
            name: self._pipeline(
                name, [each for each in counts if each.pipeline == name], log, paused, budgets, sources, now
            )
            for name, log in logs.items()
        }
        return StatusView(
            views,
            self.alerts(),
            now,
            sorted(paused),
            self._followers.all(),
            self._processes.all(),
            self._budgets.ever(),
            standby_lag_seconds(self._database),
        )

    def _counts(self) -> tuple[list[ItemCount], dict[str, IntakeView]]:
        """Count items by state, and each pipeline's log; where that is slow, what was counted holds for a while."""
        started = self._stopwatch()
        if started > self._counts_until:
            with self._database.reading() as tx:
                counts = tx.rows(ItemCount, "count_items")
                names = sorted({*self._pipelines, *(each.pipeline for each in counts)})
                self._counted = (counts, {name: IntakeView(*self._intake.totals(name)) for name in names})
            ended = self._stopwatch()
            if (took := ended - started) > QUICK_SECONDS:
                self._counts_until = ended + min(took / COUNT_SHARE, STALE_SECONDS_MAX)
        return self._counted

    def _pipeline(
        self,
        name: str,
        counts: list[ItemCount],
        log: IntakeView,
        paused: Mapping[str, str],
        budgets: list[Any],
        sources: list[SourceView],
        now: int,
    ) -> PipelineView:
        states: dict[str, int] = defaultdict(int)
        kinds: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        standings: dict[str, int] = defaultdict(int)
        waiting: dict[str, int] = defaultdict(int)
        deliveries: dict[str, int] = defaultdict(int)
        declared = self._pipelines.get(name)
        for kind, workflow in declared.workflows.items() if declared else ():
            for state in workflow.states:
                kinds[kind][state] = 0
                if kind != DELIVERY:
                    states[state] = 0
        for each in counts:
            kinds[each.kind][each.state] += each.items
            standings[each.standing] += each.items
            if each.kind == DELIVERY:
                deliveries[each.state if each.standing != "dead" else "dead"] += each.items
            else:
                states[each.state] += each.items
                if each.standing == "open":
                    waiting[each.state] += each.items
        with self._database.reading() as tx:
            oldest_ms: int | None = tx.value("oldest_due", pipeline=name)
        waits = lags(declared, counts, now)
        unmerged_ms = self._intake.oldest_unmerged_ms(name)
        if unmerged_ms is not None:
            waits[MERGE] = round(unmerged_ms / 1000, 1)
        placed = [Standing(each.kind, each.state, each.standing, each.items) for each in counts]
        writes = next((b.spent for b in budgets if b.name == f"shelf_writes:{name}"), 0)
        mine = [s for s in sources if s.pipeline == name]
        return PipelineView(
            states=dict(states),
            kinds={kind: dict(of) for kind, of in kinds.items()},
            standings=dict(standings),
            waiting=dict(waiting),
            phases=phases(declared, placed),
            queues=queues(declared, placed),
            due=sum(each.due or 0 for each in counts),
            leased=sum(each.leased for each in counts),
            parked=standings.get("parked", 0),
            rejected=standings.get("rejected", 0),
            dead_letters=standings.get("dead", 0),
            dead=dead_by_transition(declared, placed),
            dead_growth=standings.get("dead", 0) - self._dead_before(name, now, standings.get("dead", 0)),
            index_gap=self._last(f"gap:{name}", now) if declared is not None and declared.id_index is not None else 0,
            oldest_due_seconds=round(oldest_ms / 1000, 1) if oldest_ms is not None else None,
            lags=waits,
            lag_seconds=max(waits.values(), default=0.0),
            intake=log,
            settled_last_hour=round(sum(p.value for p in self.points(f"settled:{name}", since_ms=now - HOUR_MS))),
            published_last_hour=round(sum(p.value for p in self.points(f"published:{name}", since_ms=now - HOUR_MS))),
            last_processed_at=max((each.changed_at for each in counts), default=None),
            last_discovery_at=max((s.last_success_at for s in mine if s.last_success_at), default=None),
            last_work=next(iter(self._work_runs.last(name)), None),
            deliveries=dict(deliveries),
            shelf_writes_today=writes,
            shelf_writes_limit=declared.shelf_writes_per_day if declared else None,
            paused=f"pipeline:{name}" in paused,
            sources=mine,
            budgets=[b for b in budgets if name in b.name],
        )

    def _dead_before(self, name: str, now: int, otherwise: int) -> int:
        """Return how many dead letters there were an hour ago, as far as was noted."""
        points = self.points(f"dead:{name}", since_ms=now - HOUR_MS)
        return round(points[0].value) if points else otherwise

    def _last(self, series: str, now: int) -> int:
        points = self.points(series, since_ms=now - NOTED_MS)
        return round(points[-1].value) if points else 0

    def sources(self) -> list[SourceView]:
        """Return every source and its health."""
        stored = {row.source: row for row in self._schedules.all()}
        paused = self._pauses.reasons()
        now = read_clock(self._database)
        return [
            self._source(placed, stored.get(name), paused, now) for name, placed in self._source_list.current().items()
        ]

    def _source(self, placed: PlacedSource, row: ScheduleRow | None, paused: Mapping[str, str], now: int) -> SourceView:
        source, pipeline = placed.source, placed.pipeline.name
        name, schedule = source.name, source.schedule
        runs = self._schedules.runs(name, 10)
        if row is None:
            return SourceView(
                name=name, pipeline=pipeline, health="waiting", schedule=describe(schedule), **_told(placed)
            )
        return SourceView(
            name=name,
            pipeline=pipeline,
            health=(health := health_of(name, pipeline, source, row, runs, paused, now)),
            until=row.next_at if health in ("out of credits", "slow") else None,
            schedule=describe(schedule),
            **_told(placed),
            last_success_at=row.last_success_at,
            last_new_at=row.last_new_at,
            next_check_at=row.next_at,
            failures=row.failures,
            error=row.last_error,
            last_run=runs[0] if runs else None,
            incomplete_runs=sum(1 for _ in takewhile(lambda run: run.ended == "incomplete", runs)),
            credits_today=sum(r.credits for r in runs if r.started_at >= now - now % 86_400_000),
        )

    def channels(self) -> list[ChannelView]:
        """Return the channels and their limiters."""
        paused = self._pauses.reasons()
        views = []
        for name, kind in self._channels.items():
            usage = self._rates.usage(self._limiters.get(name, f"channel:{name}"))
            views.append(
                ChannelView(
                    name=name,
                    kind=kind,
                    paused=f"channel:{name}" in paused,
                    reason=paused.get(f"channel:{name}"),
                    not_before_ms=usage.closed_for_ms,
                    sent_last_minute=usage.entered_last_minute,
                    waiting=self._waiting_for(name),
                )
            )
        return views

    def _waiting_for(self, channel: str) -> int:
        with self._database.reading() as tx:
            return int(tx.value("count_channel_deliveries", **delivery_keys(channel)))

    def alerts(self, *, all_of_them: bool = False) -> list[AlertView]:
        """Return the firing alerts, or the recent history too."""
        with self._database.reading() as tx:
            return tx.rows(AlertView, "recent_alerts" if all_of_them else "firing_alerts")

    def points(self, series: str, *, since_ms: int) -> list[Point]:
        """Return a series of low-resolution history; what processes count each for themselves is added up."""
        with self._database.reading() as tx:
            if series.startswith(SUMMED):
                prefixes = {"prefix": f"{series}:", "prefix_end": f"{series};"}
                points = tx.rows(Point, "counted_since", **prefixes, since=since_ms)
            elif series.startswith("found:"):
                points = tx.rows(Point, "found_since", source=series.removeprefix("found:"), since=since_ms)
            else:
                points = tx.rows(Point, "samples", series=series, since=since_ms)
        return [Point(point.at, float(point.value)) for point in points]


def _told(placed: PlacedSource) -> dict[str, Any]:
    """Return what was said of a source, and where."""
    definition = placed.source.definition if isinstance(placed.source, Defined) else None
    address = definition.address if definition else getattr(placed.source, "address", None)
    title = definition.title if definition else None
    return {"origin": placed.origin, "address": shown_url(address) if address else None, "title": title}
