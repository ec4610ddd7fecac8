"""Everything at a glance: pipelines, sources, channels, alerts and their history."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from tidings.model.pipeline import Pipeline, Schedule, Source
from tidings.model.publication import DELIVERY, delivery_keys
from tidings.model.views import (
    AlertView,
    ChannelView,
    Health,
    IntakeView,
    PipelineView,
    Point,
    RunView,
    SourceView,
    StatusView,
)
from tidings.model.workflow import PURE
from tidings.store.db.database import Database, read_clock
from tidings.store.followers import FollowerNotes
from tidings.store.limits import BudgetStore, LimiterStore
from tidings.store.log import IntakeLog
from tidings.store.pauses import PauseStore
from tidings.store.processes import ProcessNotes
from tidings.store.sources import ScheduleRow, ScheduleStore

HOUR_MS = 3_600_000
NOTED_MS = 300_000
"""How long a note of the watch counts for the present."""
COUNT_SHARE = 0.1
"""What of the time may go into counting items, where looking is frequent and the table big."""
QUICK_SECONDS, STALE_SECONDS_MAX = 0.05, 30.0
SILENT_FACTOR = 5
SLOW_SECONDS_MIN = 60.0

MERGE = "merge"
LANE_NAMES = {PURE: "process"}
"""How the lag calls what waits for a lane that has no phase."""

WAITING = frozenset({"open", "parked"})
"""The standings of what has a way to go, now or later."""

SUMMED = ("settled:", "published:", "api_requests:", "api_errors:")
"""What every process counts for itself."""


class ItemCount(NamedTuple):
    """How many items of a kind stand in a state."""

    pipeline: str
    kind: str
    state: str
    standing: str
    items: int
    leased: int
    due: int | None
    changed_at: int
    since: int
    """When the one that stands there longest came to its state."""


class Standing(NamedTuple):
    """How many items of a kind stand so in a state."""

    kind: str
    state: str
    standing: str
    items: int


def queues(pipeline: Pipeline | None, counts: Iterable[Standing]) -> dict[str, int]:
    """Count what waits for each lane, by the declared workflows: names of states mean nothing here."""
    waiting: dict[str, int] = defaultdict(int)
    workflows = pipeline.workflows if pipeline is not None else {}
    for each in counts:
        workflow = workflows.get(each.kind)
        ways = workflow.automatic_from(each.state) if workflow is not None else ()
        if ways and each.standing in WAITING:
            waiting[ways[0].lane] += each.items
    return dict(waiting)


def phases(pipeline: Pipeline | None, counts: Iterable[Standing]) -> dict[str, int]:
    """Count what waits for each phase, such as `summarize`: the workflows say which states are which."""
    waiting: dict[str, int] = defaultdict(int)
    workflows = pipeline.workflows if pipeline is not None else {}
    for each in counts:
        workflow = workflows.get(each.kind)
        phase = workflow.phase_of(each.state) if workflow is not None else None
        if phase is not None and each.standing in WAITING:
            waiting[phase] += each.items
    return dict(waiting)


def dead_by_transition(pipeline: Pipeline | None, counts: Iterable[Standing]) -> dict[str, int]:
    """Count dead letters by the transition they failed in; where a state has none of its own, by the state."""
    found: dict[str, int] = defaultdict(int)
    workflows = pipeline.workflows if pipeline is not None else {}
    for each in counts:
        if each.standing == "dead":
            ways = workflows[each.kind].automatic_from(each.state) if each.kind in workflows else ()
            found[ways[0].name if ways else each.state] += each.items
    return dict(found)


def lags(pipeline: Pipeline | None, counts: Iterable[ItemCount], now: int) -> dict[str, float]:
    """Return per phase for how long the oldest item has waited for it, whether due, parked, leased or postponed."""
    waits: dict[str, float] = {}
    workflows = pipeline.workflows if pipeline is not None else {}
    for each in counts:
        workflow = workflows.get(each.kind)
        ways = workflow.automatic_from(each.state) if workflow is not None else ()
        if workflow is None or not ways or each.standing not in WAITING:
            continue
        phase = workflow.phase_of(each.state) or LANE_NAMES.get(ways[0].lane, ways[0].lane)
        waits[phase] = max(waits.get(phase, 0.0), round((now - each.since) / 1000, 1))
    return waits


class StatusReader:
    """Counts and summaries; reads only."""

    def __init__(
        self,
        database: Database,
        pipelines: Mapping[str, Pipeline],
        *,
        intake: IntakeLog,
        schedules: ScheduleStore,
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
        self._schedules = schedules
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
            self._source(s, p.name, stored.get(s.name), paused, now)
            for p in self._pipelines.values()
            for s in p.sources
        ]

    def _source(
        self, source: Source, pipeline: str, row: ScheduleRow | None, paused: Mapping[str, str], now: int
    ) -> SourceView:
        name, schedule = source.name, source.schedule
        runs = self._schedules.runs(name, 10)
        if row is None:
            return SourceView(name=name, pipeline=pipeline, health="waiting", schedule=describe(schedule))
        return SourceView(
            name=name,
            pipeline=pipeline,
            health=(health := _health(name, pipeline, source, row, runs, paused, now)),
            until=row.next_at if health in ("out of credits", "slow") else None,
            schedule=describe(schedule),
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


def describe(schedule: Schedule) -> str:
    """Say in words when a source is asked."""
    if schedule.cron is not None:
        return f"cron {schedule.cron}"
    seconds = schedule.every_seconds or 0
    for size, name in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"every {seconds / size:g} {name}"
    return f"every {seconds:g} s"


def _health(
    name: str,
    pipeline: str,
    source: Source,
    row: ScheduleRow,
    runs: list[RunView],
    paused: Mapping[str, str],
    now: int,
) -> Health:
    """Say in a word how a source is; what a person has to mend comes first."""
    if f"source:{name}" in paused or f"pipeline:{pipeline}" in paused:
        return "paused"
    if row.lease_until is not None and row.lease_until > now:
        return "running"
    last = next((run for run in runs if run.ended_at is not None and run.ended != "stopped"), None)
    ended = last.ended if last is not None else None
    if row.failures:
        return "refused" if ended == "refused" else "failing"
    if ended == "out of credits":
        return "out of credits"
    if last is None or (row.last_success_at is None and ended is None):
        return "waiting"
    if ended == "incomplete":
        return "incomplete"
    if ended == "slowed" or _is_slow(source.schedule, last):
        return "slow"
    if getattr(source, "lists_anew", False) and is_empty(runs):
        return "empty"
    return "silent" if is_silent(row, runs, now) else "healthy"


def _is_slow(schedule: Schedule, run: RunView) -> bool:
    """Tell whether a run took longer than the time between two; one minute is never long."""
    took = ((run.ended_at or run.started_at) - run.started_at) / 1000
    return took > max(schedule.every_seconds or 3600.0, SLOW_SECONDS_MIN)


def is_empty(runs: list[RunView]) -> bool:
    """Tell whether a source that lists what there is at every run listed nothing last time, and something before."""
    ended = [run for run in runs if run.ended_at is not None and run.ended in (None, "complete")]
    return bool(ended) and not ended[0].found and any(run.found for run in ended[1:])


def is_silent(row: ScheduleRow, runs: list[RunView], now: int) -> bool:
    """Tell whether a source has brought nothing new for much longer than is its own habit."""
    with_new = [r.started_at for r in runs if r.new]
    if row.last_new_at is None or len(with_new) < 3:
        return False
    rhythm = (with_new[0] - with_new[-1]) / (len(with_new) - 1)
    return now - row.last_new_at > max(SILENT_FACTOR * rhythm, 6 * HOUR_MS)
