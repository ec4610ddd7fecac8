"""What asks for a person: one trouble is told once, however many sources it meets."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidings.model.views import IntakeView, PipelineView, RunView, SourceView, StatusView
from tidings.serve.pages.needs import Situation
from tidings.serve.pages.phrases import paced

NOW_MS = 1_790_000_000_000
UNRESOLVED = "feed.example has no address: the name does not resolve"


def a_source(number: int = 0, error: str | None = UNRESOLVED, *, last_success_at: int | None = None) -> SourceView:
    return SourceView(
        name=f"feeds.{number}",
        pipeline="feeds",
        health="failing" if error else "healthy",
        schedule="every 5 min",
        failures=1 if error else 0,
        error=error,
        last_success_at=last_success_at,
        next_check_at=NOW_MS + 30_000 + number * 1000,
        last_run=RunView(source=f"feeds.{number}", started_at=NOW_MS - 1000, ended_at=NOW_MS, error=error),
    )


def situation(sources: Iterable[SourceView]) -> Situation:
    view = PipelineView(states={}, intake=IntakeView(0, 0, 0), sources=list(sources))
    return Situation(StatusView(at=NOW_MS, pipelines={"feeds": view}, alerts=[]), [], [])


def test_ten_sources_without_a_network_are_one_trouble():
    [need] = situation(a_source(number) for number in range(10)).needs({})

    assert (need.word, need.text) == ("no network yet", "next try in 30 s; 10 sources not reached")
    assert need.action is None


def test_a_source_that_fails_alone_is_told_by_its_name():
    healthy = a_source(1, None, last_success_at=NOW_MS)
    [need] = situation([a_source(0), healthy]).needs({})
    assert (need.word, need.text) == ("failing source", "feeds.0")


def test_what_another_cause_has_is_told_beside_the_network():
    broken = a_source(3, "feed.example answered 500")
    words = [need.word for need in situation([a_source(0), a_source(1), broken]).needs({})]
    assert words == ["no network yet", "failing source"]


def test_a_look_that_comes_later_than_the_interval_says_why():
    failing = a_source()
    late = msgspec.structs.replace(failing, failures=4, next_check_at=NOW_MS + 480_000)
    wished = msgspec.structs.replace(a_source(error=None), next_check_at=NOW_MS + 3_600_000)

    assert paced(failing) == "every 5 min"
    assert paced(late) == "every 5 min; the next look waits 8 min, because the last 4 looks failed"
    assert paced(wished) == "every 5 min; the next look waits 1 h, as the source wishes"
