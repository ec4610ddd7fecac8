"""How many may start, and when."""

from __future__ import annotations

import pytest

from tidings.model.pace import UNLIMITED, Pace


class Watch:
    """A stopwatch that tests move by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_minutes_starts_may_come_at_once_and_no_more_within_that_minute() -> None:
    watch = Watch()
    pace = Pace(4, now=watch)
    pace.take(3)
    assert pace.free() == 1
    watch.seconds += 30
    pace.take()
    assert pace.free() == 0
    assert pace.wait_seconds() == 30
    watch.seconds += 30
    assert pace.free() == 3


def test_a_burst_of_one_keeps_starts_evenly_apart() -> None:
    watch = Watch()
    pace = Pace(6, burst=1, now=watch)
    waits = []
    for _ in range(4):
        waits.append(pace.wait_seconds())
        pace.take()
    assert waits == [0.0, 10.0, 20.0, 30.0]


def test_nothing_starts_while_held() -> None:
    watch = Watch()
    pace = Pace(60, now=watch)
    pace.hold(9)
    assert (pace.free(), pace.wait_seconds()) == (0, 9.0)
    watch.seconds += 9
    assert (pace.free(), pace.wait_seconds()) == (60, 0.0)


@pytest.mark.parametrize(("per_minute", "seconds"), [(0.5, 120), (0.1, 600)])
def test_a_rate_below_one_a_minute_starts_one_now_and_then(per_minute: float, seconds: float) -> None:
    watch = Watch()
    pace = Pace(per_minute, now=watch)
    assert pace.free() == 1
    pace.take()
    assert pace.free() == 0
    assert pace.wait_seconds() == seconds


def test_without_a_rate_everything_may_start() -> None:
    pace = Pace(None)
    pace.take(1000)
    assert (pace.free(), pace.wait_seconds()) == (UNLIMITED, 0.0)
