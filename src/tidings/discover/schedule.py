"""When a source is asked next."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from tidings.model.errors import Misconfigured
from tidings.model.pipeline import Schedule, Source

BACKOFF_BASE_SECONDS = 30.0
BACKOFF_CAP_SECONDS = 6 * 3600.0


def seconds_until_next(
    schedule: Schedule, now: datetime, *, failures: int, wished: float | None, error: str | None, rng: random.Random
) -> float:
    """Return how long until the next run: the schedule's time, what the source wished, or backoff after a failure."""
    if error is None:
        return seconds_until_due(schedule, now) if wished is None else max(1.0, wished)
    backoff = min(BACKOFF_CAP_SECONDS, BACKOFF_BASE_SECONDS * 2.0 ** min(failures, 20))
    backoff *= 1 + 0.2 * rng.uniform(-1, 1)
    return max(backoff, wished or 0.0)


def check_schedule(source: Source) -> None:
    """Refuse a schedule that never comes."""
    schedule = source.schedule
    if schedule.cron is not None:
        try:
            next(CronSim(schedule.cron, datetime.now(UTC)))
        except (CronSimError, StopIteration) as error:
            raise Misconfigured(f"{source.name}: {schedule.cron!r} is no cron expression: {error}") from error
    elif schedule.every_seconds is None or schedule.every_seconds <= 0:
        raise Misconfigured(f"{source.name}: a schedule needs every_seconds above 0, or a cron expression")


def seconds_until_due(schedule: Schedule, now: datetime) -> float:
    """Return how long until the schedule's next time."""
    if schedule.cron is not None:
        return float((next(CronSim(schedule.cron, now)) - now).total_seconds())
    assert schedule.every_seconds is not None
    return schedule.every_seconds
