"""How a source is, in a word, as its schedule and its last runs tell."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.model.pipeline import Schedule, Source
from tidings.model.views import Health, RunView
from tidings.store.sources import ScheduleRow

HOUR_MS = 3_600_000
SILENT_FACTOR = 5
SLOW_SECONDS_MIN = 60.0


def describe(schedule: Schedule) -> str:
    """Say in words when a source is asked."""
    if schedule.cron is not None:
        return f"cron {schedule.cron}"
    seconds = schedule.every_seconds or 0
    for size, name in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"every {seconds / size:g} {name}"
    return f"every {seconds:g} s"


def health_of(
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
    last = next((run for run in runs if run.ended_at is not None and run.ended not in ("stopped", "lost")), None)
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
