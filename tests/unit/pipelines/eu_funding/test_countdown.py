"""People are told once, on the day in Brussels, that a deadline is 30, 14 or 3 days ahead; never late."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.unit.pipelines.eu_funding.test_workflow import CALL, a_work, brussels, call

from tidings.model.publication import Route
from tidings.model.vocabulary import vocabulary_of
from tidings.pipelines.eu_funding import Settings, build
from tidings.pipelines.eu_funding.body import Opportunity, closes_at
from tidings.pipelines.eu_funding.notices import announce, renew
from tidings.pipelines.eu_funding.processors import publish
from tidings.publish.deliveries import deliveries_for

ONE = call(deadlines=("2026-12-01T17:00:00Z",))


def shown(body: Opportunity, now_ms: int, accepted: Any = None, state: str = "published") -> tuple[Any, Any]:
    """Publish a call at a time; return the outcome and what is announced."""
    work = a_work(body, state, now_ms, accepted=accepted)
    outcome = publish(work)
    work.body = outcome.body
    return outcome, announce(work, max_age_days=7)


def test_a_deadline_is_counted_down_in_brussels_days_and_each_threshold_told_once() -> None:
    told, body, now_ms = [], ONE, brussels(2026, 10, 20, 12)
    outcome, _ = shown(ONE, now_ms, ONE)
    for _ in range(8):
        now_ms, before = outcome.due_at, outcome.body
        outcome, notices = shown(before, now_ms, before)
        _, again = shown(outcome.body, now_ms, outcome.body)
        told += [(now_ms, notice.title) for notice in notices]
        assert again == ()
        if now_ms >= brussels(2026, 11, 28, 8):
            break

    assert told == [
        (brussels(2026, 11, 1, 8), "Closes in 30 days: Quiet harbours"),
        (brussels(2026, 11, 17, 8), "Closes in 14 days: Quiet harbours"),
        (brussels(2026, 11, 28, 8), "Closes in 3 days: Quiet harbours"),
    ]
    assert outcome.due_at == closes_at(ONE.deadlines[0])
    assert body.deadlines == outcome.body.deadlines


def test_what_was_missed_during_a_long_pause_is_not_told_late() -> None:
    outcome, _ = shown(ONE, brussels(2026, 10, 20, 12), ONE)
    late, notices = shown(outcome.body, brussels(2026, 11, 20, 12), outcome.body)
    _, last = shown(late.body, late.due_at, late.body)

    assert notices == ()
    assert late.due_at == brussels(2026, 11, 28, 8)
    assert [notice.attributes["closes"] for notice in last] == [3]


def test_a_moved_deadline_is_counted_down_from_its_new_day() -> None:
    outcome, _ = shown(ONE, brussels(2026, 11, 17, 9), ONE)
    moved = msgspec.structs.replace(ONE, deadlines=("2026-12-15T17:00:00Z",))
    after, notices = shown(moved, brussels(2026, 11, 18, 9), outcome.body, "summarized")
    _, near = shown(after.body, after.due_at, after.body)

    assert [notice.attributes["event"] for notice in notices] == [["update", "deadline-moved"]]
    assert after.due_at == brussels(2026, 12, 1, 8)
    assert [(notice.attributes["closes"], notice.attributes["closing_day"]) for notice in near] == [(14, "2026-12-15")]


def test_a_queued_notice_is_renewed_only_while_it_is_true() -> None:
    outcome, _ = shown(ONE, brussels(2026, 11, 1, 9), ONE)
    now_ms = brussels(2026, 11, 17, 8)
    today, (notice,) = shown(outcome.body, now_ms, outcome.body)
    moved = msgspec.structs.replace(today.body, deadlines=("2026-12-15T17:00:00Z",))

    same: Any = renew(today.body, notice, now_ms)
    next_day: Any = renew(today.body, notice, brussels(2026, 11, 18, 9))
    assert same.title == "Closes in 14 days: Quiet harbours"
    assert next_day.title == "Closes in 13 days: Quiet harbours"
    assert "Closes in 13 days: 1 December 2026, 17:00 Brussels time." in next_day.text
    assert renew(today.body, notice, brussels(2026, 11, 20, 9)) is None
    assert renew(moved, notice, now_ms) is None


def test_routes_ask_for_closing_calls_and_a_delivery_is_born_once() -> None:
    pipeline = build(Settings())
    outcome, _ = shown(ONE, brussels(2026, 11, 1, 9), ONE)
    now_ms = brussels(2026, 11, 17, 8)
    today, notices = shown(outcome.body, now_ms, outcome.body)
    work = a_work(today.body, "published", now_ms, accepted=outcome.body)
    work.revision = 4

    def born(query: str) -> list[str]:
        found = deliveries_for(
            "eu_funding", work, notices, [Route("eu_funding", "eu", query)], vocabulary_of([pipeline])
        )
        return [finding.key for finding in found]

    assert born("event:closing-soon") == ["eu/opportunity/1TOPICS/closes/2026-12-01/14"]
    assert born("event:closing-soon closes:<=3") == []
    assert born("event:update") == born("event:new") == []
    assert born("status:open") == born("") == []
    assert CALL.deadlines[0] == ONE.deadlines[0]
