"""Fixtures every test may use: both databases for real, and the recorded samples where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of recorded real samples, beside the checkout."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail("the recorded samples are missing; in CI they must be there")
        pytest.skip("the recorded samples are not beside this checkout")
    return SHARED
