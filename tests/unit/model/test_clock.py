"""Times are UTC milliseconds, and written in one way."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.clock import DAY_MS, SystemClock, day_of, read_time, rfc3339, seconds_left_in_day

YEAR_2200_MS = 7_258_118_400_000


@pytest.mark.parametrize(
    ("ms", "written"),
    [
        (None, None),
        (0, "1970-01-01T00:00:00.000Z"),
        (1_800_000_000_007, "2027-01-15T08:00:00.007Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    ],
)
def test_a_time_is_written(ms: int | None, written: str | None) -> None:
    assert rfc3339(ms) == written


@given(ms=st.integers(0, YEAR_2200_MS))
def test_a_written_time_is_read_back(ms: int) -> None:
    written = rfc3339(ms)
    assert written is not None
    moment = datetime.fromisoformat(written.replace("Z", "+00:00"))
    assert round(moment.timestamp() * 1000) == ms
    assert len(written) == len("2026-01-01T00:00:00.000Z")


@given(one=st.integers(0, YEAR_2200_MS), other=st.integers(0, YEAR_2200_MS))
def test_written_times_sort_as_they_pass(one: int, other: int) -> None:
    assert (str(rfc3339(one)) < str(rfc3339(other))) == (one < other)


@given(ms=st.integers(0, YEAR_2200_MS))
def test_the_day_is_the_written_times_day(ms: int) -> None:
    assert str(rfc3339(ms)).startswith(day_of(ms))


def test_a_day_begins_at_midnight_utc() -> None:
    assert (day_of(DAY_MS - 1), day_of(DAY_MS)) == ("1970-01-01", "1970-01-02")


def test_the_machines_clock_is_in_milliseconds() -> None:
    clock = SystemClock()
    before = clock.now_ms()
    assert "2024" < day_of(before) < "2200"
    assert clock.now_ms() >= before - DAY_MS


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:01.250+01:00", 1250),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-02", DAY_MS),
        (" 1970-01-01T00:00:00.000+0000 ", 0),
        ("1969-12-31T23:59:59Z", -1000),
    ],
)
def test_times_are_read_in_every_iso_spelling(text: str, ms: int) -> None:
    assert read_time(text) == ms


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", None, 7, "2026-01-01" + " " * 60, "9999-12-31T23:59:59-05:00"]
)
def test_what_is_no_time_is_none(text: object) -> None:
    assert read_time(text) is None


def test_a_time_without_a_zone_belongs_to_the_given_one_or_is_refused() -> None:
    assert read_time("1970-01-01T02:00:00", zone=timezone(timedelta(hours=2))) == 0
    assert read_time("1970-01-01T02:00:00", zone=None) is None
    assert read_time("1970-01-01T02:00:00Z", zone=None) == 2 * 3_600_000


def test_the_rest_of_a_day_is_counted_in_utc() -> None:
    assert seconds_left_in_day(DAY_MS - 1500) == 1.5
    assert seconds_left_in_day(DAY_MS) == 86_400
