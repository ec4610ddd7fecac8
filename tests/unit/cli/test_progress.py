"""Meters: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.support.clock import ManualClock

from tidings.cli.progress import LINE_SECONDS, Meter


def test_a_terminal_shows_share_and_words(capsys: pytest.CaptureFixture[str]) -> None:
    screen = io.StringIO()
    with Meter("asking [source]", to=Console(file=screen, force_terminal=True, width=100)) as meter:
        meter.show("7 found")
        meter.show("30 found", 30, 120)

    assert "asking [source]" in screen.getvalue()
    assert "25%" in screen.getvalue()
    assert "30 found" in screen.getvalue()
    assert capsys.readouterr() == ("", "")


def test_elsewhere_a_line_is_written_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    paper = io.StringIO()
    with Meter("asking", to=Console(file=paper), clock=lambda: clock.now_ms() / 1000) as meter:
        for done in range(5):
            clock.advance(seconds=LINE_SECONDS * 0.6)
            meter.show(f"{done} found", done, 4)
        clock.advance(seconds=LINE_SECONDS)
        meter.show("9 found")

    assert paper.getvalue() == ""
    assert capsys.readouterr().err.splitlines() == [
        "asking: 25 %, 1 found",
        "asking: 75 %, 3 found",
        "asking: 9 found",
    ]
