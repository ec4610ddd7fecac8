"""The dashboard's counts: fresh where counting is quick, a little old where it is not, and never for long."""

from __future__ import annotations

import pytest
from tests.support.example import thing
from tests.support.store import Ground

from tidings.store.operator.status import StatusReader


class Watch:
    """A clock on which looking at it takes so long: between two looks a count was made."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 1_000.0, seconds

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


def glancing(ground: Ground, watch: Watch) -> StatusReader:
    store = ground.store
    return StatusReader(
        ground.database,
        ground.pipelines,
        intake=store.intake,
        schedules=store.schedules,
        source_list=store.source_list,
        channels={},
        limiters={},
        stopwatch=watch,
    )


def counted(glance: StatusReader) -> tuple[int, int]:
    view = glance.status().pipelines["example"]
    return sum(view.states.values()), view.intake.total


def test_a_quick_count_is_made_anew_each_time(ground: Ground) -> None:
    glance = glancing(ground, Watch(0.01))
    ground.record(thing("a"))
    assert counted(glance) == (1, 1)

    ground.record(thing("b"))
    assert counted(glance) == (2, 2)


@pytest.mark.parametrize(("seconds", "kept_seconds"), [(1.0, 10.0), (60.0, 30.0)], ids=["a tenth", "half a minute"])
def test_a_slow_count_is_kept_for_a_while(ground: Ground, seconds: float, kept_seconds: float) -> None:
    watch = Watch(seconds)
    glance = glancing(ground, watch)
    ground.record(thing("a"))
    assert counted(glance) == (1, 1)
    counted_at = watch.now

    ground.record(thing("b"))
    watch.now = counted_at + kept_seconds - seconds - 0.1
    assert counted(glance) == (1, 1)
    watch.now = counted_at + kept_seconds
    assert counted(glance) == (2, 2)
