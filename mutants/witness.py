"""A pytest plugin that tells the runner what failed and why; it refuses to test any code but the copy's."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

import tidings

REPORT, SOURCE = "MUTANTS_REPORT", "MUTANTS_SOURCE"


def pytest_configure() -> None:
    """Be sure that the mutated source is the one that is imported; child processes get the same search path."""
    loaded, expected = Path(tidings.__file__).resolve(), Path(os.environ[SOURCE]).resolve()
    assert loaded.is_relative_to(expected), f"tidings comes from {loaded}, not from {expected}"
    assert os.environ["PYTHONPATH"].split(os.pathsep)[0] == os.environ[SOURCE]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note every test that failed, or had its say."""
    report = yield
    if report.when == "call" or report.failed:
        error = call.excinfo.type.__name__ if call.excinfo is not None else ""
        _note(test=item.nodeid, phase=report.when, outcome=report.outcome, error=error)
    return report


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note files that could not even be read."""
    if report.failed:
        _note(test=report.nodeid, phase="collect", outcome="failed", error="collection")


def _note(**facts: str | None) -> None:
    with Path(os.environ[REPORT]).open("a") as file:
        file.write(json.dumps(facts) + "\n")
