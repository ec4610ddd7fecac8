"""Fixtures of the contract suite: the same tests on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.support.store import Ground

from tidings.model.pipeline import Pipeline

OpenGround = Callable[..., Ground]


@pytest.fixture
def open_ground(database_url: str) -> Iterator[OpenGround]:
    """Open stores on the test's database: each stands for a process of its own."""
    with ExitStack() as opened:

        def opening(*pipelines: Pipeline, **options: Any) -> Ground:
            ground = Ground(database_url, *pipelines, **options)
            opened.callback(ground.close)
            return ground

        yield opening


@pytest.fixture
def ground(open_ground: OpenGround) -> Ground:
    """One store over the example pipeline."""
    return open_ground()
