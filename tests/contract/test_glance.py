"""The dashboard's counts: fresh where counting is quick, a little old where it is not, and never for long."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.example import thing
from tests.ground import Ground

from tidings.store import glance


class Watch:
    """A clock on which looking at it takes so long: between two looks a count was made."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 1_000.0, seconds

    def monotonic(self) -> float:
        self.now += self.seconds
        return self.now


def counted(ground: Ground) -> tuple[int, int]:
    view = ground.store.desk.status().pipelines["example"]
    return sum(view.states.values()), view.intake.total


def test_a_quick_count_is_made_anew_each_time(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glance, "time", SimpleNamespace(monotonic=Watch(0.01).monotonic))
    ground.record(thing("a"))
    assert counted(ground) == (1, 1)

    ground.record(thing("b"))
    assert counted(ground) == (2, 2)


@pytest.mark.parametrize(("seconds", "kept_seconds"), [(1.0, 10.0), (60.0, 30.0)], ids=["a tenth", "half a minute"])
def test_a_slow_count_is_kept_for_a_while(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, seconds: float, kept_seconds: float
) -> None:
    watch = Watch(seconds)
    monkeypatch.setattr(glance, "time", SimpleNamespace(monotonic=watch.monotonic))
    ground.record(thing("a"))
    assert counted(ground) == (1, 1)
    counted_at = watch.now

    ground.record(thing("b"))
    watch.now = counted_at + kept_seconds - seconds - 0.1
    assert counted(ground) == (1, 1)
    watch.now = counted_at + kept_seconds
    assert counted(ground) == (2, 2)
