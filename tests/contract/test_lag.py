"""The lag is the age of the oldest finding or item that is neither finished nor waiting for a person."""

from __future__ import annotations

from typing import Any

from tests.contract.test_queues import foreign
from tests.support.example import pipeline, thing
from tests.support.store import Ground

from tidings.model.backoff import RetryPolicy
from tidings.model.views import PipelineView
from tidings.watch.rules import Facts, Thresholds, readings

HOURS = 3
SECONDS = HOURS * 3600
PATIENT = RetryPolicy(attempts=50, base_seconds=60, cap_seconds=600, jitter=0)
PARKS = RetryPolicy(attempts=1, base_seconds=60, cap_seconds=60, jitter=0, exhausted="park")


def view(ground: Ground) -> PipelineView:
    return ground.store.status_views.status().pipelines["example"]


def fired(ground: Ground) -> dict[str, str]:
    status = ground.store.status_views.status()
    found = readings(status, (), Facts(), Thresholds(), 0.0)
    return {r.name: r.message for r in found if r.value > r.threshold}


def test_findings_that_nobody_merges_are_late(ground: Ground) -> None:
    ground.store.intake.append("example", [thing(str(n)) for n in range(20)])
    ground.advance(seconds=SECONDS)

    assert view(ground).lags["merge"] >= SECONDS
    assert view(ground).lag_seconds >= SECONDS
    assert "merge 3.0 h" in fired(ground)["processing lag"]


def test_items_that_fail_again_and_again_are_late_although_none_is_due(open_ground: Any) -> None:
    ground: Ground = open_ground(pipeline(retry=PATIENT))
    ground.record(thing("1", fate="fail"))
    for _ in range(20):
        ground.work()
        ground.advance(seconds=SECONDS / 20)
    ground.work()

    assert view(ground).due == 0
    assert view(ground).lags["process"] >= SECONDS * 0.9
    assert "processing lag" in fired(ground)


def test_parked_items_are_late(open_ground: Any) -> None:
    ground: Ground = open_ground(pipeline(retry=PARKS))
    ground.record(thing("1", fate="fail"))
    ground.work()
    assert ground.item("1").standing == "parked"
    ground.advance(seconds=SECONDS)

    assert view(ground).lag_seconds >= SECONDS
    assert "processing lag" in fired(ground)


def test_each_phase_has_a_lag_of_its_own(open_ground: Any) -> None:
    ground: Ground = open_ground(foreign("ai"))
    ground.record(thing("1"))
    ground.advance(seconds=SECONDS)
    ground.store.intake.append("example", [thing("2")])
    ground.advance(seconds=60)

    lags = view(ground).lags
    assert set(lags) == {"merge", "summarize"}
    assert SECONDS <= lags["summarize"] < SECONDS + 120
    assert 60 <= lags["merge"] < 120


def test_what_has_ended_or_waits_for_a_person_is_not_late(ground: Ground) -> None:
    fates = ("", "die", "reject")
    ground.record(*(thing(str(n), fate=fate) for n, fate in enumerate(fates)))
    ground.work()
    assert [ground.item(str(n)).standing for n in range(3)] == ["done", "dead", "rejected"]
    ground.advance(seconds=SECONDS)

    assert view(ground).lags == {}
    assert view(ground).lag_seconds == 0
    assert fired(ground) == {}


def test_one_that_is_brought_back_begins_to_wait_then(ground: Ground) -> None:
    ground.record(thing("1", fate="die"))
    ground.work()
    ground.advance(seconds=SECONDS)
    ground.store.operations.revive(item=ground.item("1").id, actor="ada")

    assert view(ground).lag_seconds < 60
