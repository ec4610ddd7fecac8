"""One line per event, no secret in it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from tidings.watch import logs
from tidings.watch.logs import HumanFormatter, JsonFormatter, Seldom, event, hide


@pytest.fixture
def written() -> Iterator[list[logging.LogRecord]]:
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Keep()
    before = logs.log.level, logs.log.handlers[:]
    logs.log.setLevel(logging.INFO)
    logs.log.addHandler(handler)
    yield records
    logs.log.setLevel(before[0])
    logs.log.handlers[:] = before[1]


def test_an_event_is_one_line_for_people(written: list[logging.LogRecord]) -> None:
    event("merged", pipeline="hacker_news", born=3, changed=0, error=None)

    line = HumanFormatter().format(written[0])

    assert line.endswith(" info merged pipeline=hacker_news born=3")


def test_an_event_is_one_json_object_for_programs(written: list[logging.LogRecord]) -> None:
    event("merged", pipeline="hacker_news", born=3, changed=0)

    line = json.loads(JsonFormatter().format(written[0]))

    assert (line["event"], line["pipeline"], line["born"], line["level"]) == ("merged", "hacker_news", 3, "info")
    assert line["changed"] == 0


def test_a_known_secret_never_reaches_a_line(written: list[logging.LogRecord]) -> None:
    hide("canary-secret-1234")
    event("failed", error="GET /?key=canary-secret-1234 was refused")

    for formatter in (HumanFormatter(), JsonFormatter()):
        assert "canary-secret-1234" not in formatter.format(written[0])
        assert "***" in formatter.format(written[0])


def test_control_characters_cannot_forge_a_second_line(written: list[logging.LogRecord]) -> None:
    event("failed", error="first\n12:00:00 forged\x1b[31m \u202e")

    line = HumanFormatter().format(written[0])

    assert "\n" not in line
    assert "\x1b" not in line
    assert "\u202e" not in line


def test_a_long_value_is_cut(written: list[logging.LogRecord]) -> None:
    event("failed", error="x" * 10_000)

    assert len(HumanFormatter().format(written[0])) < 400


def test_the_same_warning_is_written_once_a_second(written: list[logging.LogRecord]) -> None:
    seldom = Seldom(seconds=60)
    for _ in range(100):
        seldom.event("store unavailable", error="down")

    assert len(written) == 1


def test_hidden_characters_leave_a_line_for_programs_readable(written: list[logging.LogRecord]) -> None:
    event("found", title="a\u2028b\x9f\U000e0041")

    line = json.loads(JsonFormatter().format(written[0]))

    assert line["title"] == "a\u2028b\x9f\U000e0041"
