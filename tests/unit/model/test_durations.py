"""Lengths of time are read as people write them."""

from __future__ import annotations

import pytest

from tidings.model.durations import duration_seconds


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90.0),
        (0.5, 0.5),
        ("43200", 43_200.0),
        ("12h", 43_200.0),
        ("15 min", 900.0),
        ("15 minutes", 900.0),
        ("1h 30m", 5_400.0),
        ("1 hour, 30 minutes", 5_400.0),
        ("7 days", 604_800.0),
        ("2 Weeks", 1_209_600.0),
        ("30s", 30.0),
        ("1.5d", 129_600.0),
    ],
)
def test_usual_spellings_are_understood(written, seconds):
    assert duration_seconds(written) == seconds


@pytest.mark.parametrize("written", ["", "soon", "12x", "h", "-5m", "12h!", True, None, float("nan"), float("inf"), []])
def test_anything_else_is_refused_with_advice(written):
    with pytest.raises(ValueError, match="12h"):
        duration_seconds(written)
