"""Limits are told apart and respected; discovery always gets its share."""

from __future__ import annotations

import json

import pytest
from tests.support.clock import ManualClock
from tests.unit.pipelines.first_issues.hub import NOW_MS

from tidings.model.contracts import Kit
from tidings.model.errors import SlowDown
from tidings.model.web import Response
from tidings.pipelines.first_issues.quota import BUDGET, HOUR_MS, CallGate, Quota, limit_pause, read_quota
from tidings.process.memory_ledger import MemoryLedger


@pytest.fixture
def errors(samples):
    return {each["name"]: each for each in json.loads((samples / "github" / "synthetic_errors.json").read_text())}


def answer(recorded):
    body = recorded["body"]
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Response(recorded["status"], "", recorded["headers"], raw)


def test_recorded_refusals_are_told_apart(errors):
    now_ms = 1_775_999_000_000
    waits = {
        name: None if (pause := limit_pause(answer(each), now_ms, 0)) is None else pause.until_ms - now_ms
        for name, each in errors.items()
    }

    assert waits.pop("primary_limit_unauthenticated") == 1_000_000
    assert waits.pop("primary_limit_authenticated") == 1_000_000
    assert waits.pop("secondary_limit_with_retry_after") == 60_000
    assert waits.pop("secondary_limit_no_retry_after") == 60_000
    assert set(waits.values()) == {None}


def test_secondary_limits_in_a_row_double_the_wait(errors):
    limited = answer(errors["secondary_limit_no_retry_after"])
    waits = [pause.until_ms for n in range(8) if (pause := limit_pause(limited, 0, n))]

    assert waits == [60_000, 120_000, 240_000, 480_000, 960_000, 1_920_000, 3_600_000, 3_600_000]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-limit": "x"},
        {"x-ratelimit-limit": "0", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"},
    ],
)
def test_senseless_headers_are_no_quota(headers):
    assert read_quota(headers, NOW_MS) is None


def test_a_window_is_never_longer_than_an_hour():
    headers = {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "7", "x-ratelimit-reset": "1507651200000"}

    assert read_quota(headers, NOW_MS) == Quota(60, 7, NOW_MS + HOUR_MS)


@pytest.mark.parametrize(
    ("limit", "remaining", "left_minutes", "discovery_waits", "work_waits"),
    [
        (60, 60, 60, False, False),
        (60, 31, 60, False, False),
        (60, 29, 60, False, True),
        (60, 16, 30, False, False),
        (60, 14, 30, False, True),
        (60, 1, 1, False, False),
        (60, 0, 30, True, True),
        (5000, 301, 60, False, False),
        (5000, 299, 60, False, True),
        (5000, 0, 1, True, True),
    ],
)
def test_work_leaves_discovery_a_share_that_shrinks_with_the_hour(
    limit, remaining, left_minutes, discovery_waits, work_waits
):
    pace = CallGate(daily_calls=1000)
    pace._quota = Quota(limit, remaining, NOW_MS + left_minutes * 60_000)

    assert (pace.wait_ms(NOW_MS, "discovery") > 0) == discovery_waits
    assert (pace.wait_ms(NOW_MS, "work") > 0) == work_waits
    assert pace.wait_ms(NOW_MS, "work") <= left_minutes * 60_000
    assert pace.wait_ms(NOW_MS + pace.wait_ms(NOW_MS, "work") + 1, "work") == 0


async def test_calls_under_way_count_before_their_answers_come():
    clock = ManualClock(NOW_MS)
    kit = a_kit(clock)
    pace = CallGate(daily_calls=1000)
    headers = {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "3", "x-ratelimit-reset": str(NOW_MS // 1000 + 60)}
    await pace.done(kit, Response(200, "", headers), await pace.admit(kit, "discovery"))
    for _ in range(3):
        await pace.admit(kit, "discovery")

    with pytest.raises(SlowDown, match="60 calls an hour"):
        await pace.admit(kit, "discovery")


async def test_a_pause_holds_for_every_process():
    clock = ManualClock(NOW_MS)
    kit = a_kit(clock)
    one, other = CallGate(daily_calls=10), CallGate(daily_calls=10)
    limited = Response(429, "", {"retry-after": "30"}, b'{"message": "You have exceeded a secondary rate limit."}')
    with pytest.raises(SlowDown):
        await one.obey(kit, limited)

    with pytest.raises(SlowDown) as slow:
        await other.admit(kit, "work")
    clock.advance(seconds=30)
    await other.admit(kit, "work")

    assert slow.value.retry_after_seconds == pytest.approx(30)


async def test_calls_are_counted_against_the_daily_budget():
    clock = ManualClock(NOW_MS)
    kit = a_kit(clock)
    pace = CallGate(daily_calls=12)
    for _ in range(12):
        await pace.done(kit, None, await pace.admit(kit, "work"))

    with pytest.raises(SlowDown, match="budget of 12"):
        await pace.admit(kit, "work")
    sheet = kit.ledger.sheet(BUDGET)
    assert (sheet.spent, sheet.reserved) == (10, 2)


def a_kit(clock):
    return Kit(None, None, None, MemoryLedger(clock), clock)  # type: ignore[arg-type]  # only ledger and clock are used
