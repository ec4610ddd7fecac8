"""Waits grow, stay within their bounds, and end."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.backoff import RETRY_AFTER_SECONDS_MAX, RetryPolicy
from tidings.model.errors import Misconfigured

bases = st.floats(0.01, 100)
factors = st.floats(1, 10_000)
jitters = st.floats(0, 0.99)
ROUNDING_MS = 1


@given(base=bases, factor=factors, jitter=jitters, attempt=st.integers(1, 5_000), seed=st.integers())
def test_a_wait_lies_in_its_bounds(base: float, factor: float, jitter: float, attempt: int, seed: int) -> None:
    policy = RetryPolicy(base_seconds=base, cap_seconds=base * factor, jitter=jitter)
    middle = min(policy.cap_seconds, base * 2.0 ** min(attempt - 1, 100)) * 1000
    delay = policy.delay_ms(attempt, random.Random(seed))
    assert middle * (1 - jitter) - ROUNDING_MS <= delay <= middle * (1 + jitter) + ROUNDING_MS
    assert delay >= 1


@given(attempt=st.integers(1, 60))
def test_without_jitter_waits_never_shrink(attempt: int) -> None:
    policy, rng = RetryPolicy(jitter=0), random.Random(1)
    assert policy.delay_ms(attempt, rng) <= policy.delay_ms(attempt + 1, rng) <= 900_000


def test_waits_double_up_to_the_cap() -> None:
    policy, rng = RetryPolicy(base_seconds=2, cap_seconds=30, jitter=0), random.Random(1)
    assert [policy.delay_ms(n, rng) for n in range(1, 7)] == [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]


@given(asked=st.floats(0, 1e9), attempt=st.integers(1, 20), seed=st.integers())
def test_what_the_other_side_asks_is_a_lower_bound_of_at_most_an_hour(asked: float, attempt: int, seed: int) -> None:
    policy = RetryPolicy(base_seconds=1, cap_seconds=600, jitter=0.2)
    own = policy.delay_ms(attempt, random.Random(seed))
    delay = policy.delay_ms(attempt, random.Random(seed), asked)
    assert delay == max(own, round(min(asked, RETRY_AFTER_SECONDS_MAX) * 1000))
    assert delay <= RETRY_AFTER_SECONDS_MAX * 1000


@given(attempts=st.integers(1, 100), allowed=st.integers(1, 100), failing_ms=st.integers(0, 10**12))
def test_tries_are_used_up_by_their_number(attempts: int, allowed: int, failing_ms: int) -> None:
    assert RetryPolicy(attempts=allowed).is_used_up(attempts, failing_ms) == (attempts >= allowed)


@given(failing_ms=st.integers(0, 200_000))
def test_tries_are_used_up_by_their_window(failing_ms: int) -> None:
    policy = RetryPolicy(attempts=1_000, window_seconds=100)
    assert policy.is_used_up(1, failing_ms) == (failing_ms >= 100_000)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"attempts": 0}, "at least 1 attempt, not 0"),
        ({"base_seconds": 0}, "must lie above 0"),
        ({"base_seconds": -1}, "must lie above 0"),
        ({"base_seconds": 10, "cap_seconds": 9}, "not above the cap"),
        ({"jitter": -0.1}, r"must lie in \[0, 1\)"),
        ({"jitter": 1}, r"must lie in \[0, 1\)"),
        ({"base_seconds": 5, "window_seconds": 4}, "shorter than its first wait"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(Misconfigured, match=message):
        RetryPolicy(**values)
