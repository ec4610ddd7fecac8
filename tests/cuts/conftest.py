"""Networks are cut for real only where asked: `make cuts`, or a few of them in CI. Prints what each cut cost."""

from __future__ import annotations

import os

import pytest
from tests.cuts.scene import Outcome

collect_ignore_glob = [] if os.environ.get("TIDINGS_CUTS") else ["test_*.py"]
_FOUND: pytest.StashKey[list[Outcome]] = pytest.StashKey()


@pytest.fixture
def outcomes(request: pytest.FixtureRequest) -> list[Outcome]:
    """What became of each case; the table is printed at the end."""
    return request.config.stash.setdefault(_FOUND, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    if found := config.stash.get(_FOUND, []):
        terminalreporter.section("seconds until work goes on")
        for line in Outcome.table(found):
            terminalreporter.write_line(line)
