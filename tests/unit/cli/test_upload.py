"""Uploads by the command line: what is counted, what is refused, and how much of it is kept in memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from tests.support.commands import tidings

from tidings.cli.upload import REJECTED_SHOWN, RefusedLines
from tidings.model.item import Rejected

STORY = b'{"id": 1, "type": "story", "title": "One", "score": 3}\n'


@pytest.fixture
def ready(home: Path) -> Path:
    """A home whose Hacker News takes uploads."""
    (home / "tidings.toml").write_text('[pipelines.hacker_news]\nbase_url = "http://127.0.0.1:1/v0"\n')
    return home


def test_new_changed_known_and_refused_lines_are_counted(ready: Path) -> None:
    (ready / "items.jsonl.gz").write_bytes(gzip.compress(STORY + b"null\n" + STORY))
    first = tidings("upload", "hacker_news", "items.jsonl.gz")
    second = tidings("upload", "hacker_news", "-", given=STORY.replace(b"3", b"4"))

    assert first.code == second.code == 0
    assert first.out.splitlines() == [
        "1 accepted (1 new, 0 changed), 1 duplicate, 1 rejected",
        "  line 2: null is no item",
    ]
    assert second.out == "1 accepted (0 new, 1 changed), 0 duplicate, 0 rejected\n"


def test_people_see_the_first_refused_lines_and_programs_all(ready: Path) -> None:
    lines = b"{}\n" * (REJECTED_SHOWN + 5)
    shown = tidings("upload", "hacker_news", "-", given=STORY + lines).out.splitlines()
    told = json.loads(tidings("upload", "hacker_news", "-", "--json", given=STORY + lines).out)

    assert shown[1] == "  line 2: id is missing"
    assert shown[-1] == "  … and 5 more; --json lists them all"
    assert len(shown) == REJECTED_SHOWN + 2
    assert [line["line"] for line in told["rejected"]] == list(range(2, REJECTED_SHOWN + 7))
    assert {name: told[name] for name in ("accepted", "new", "changed", "duplicate")} == {
        "accepted": 0,
        "new": 0,
        "changed": 0,
        "duplicate": 1,
    }


def test_an_upload_of_bad_lines_alone_fails(ready: Path) -> None:
    for more in ((), ("--json",)):
        bad = tidings("upload", "hacker_news", "-", *more, given=b"{}\nnonsense\n")
        assert (bad.code, "rejected" in bad.out) == (1, True)


def test_an_upload_of_nothing_is_nothing(ready: Path) -> None:
    assert json.loads(tidings("upload", "hacker_news", "-", "--json").out)["rejected"] == []


def test_refused_lines_take_no_memory_however_many_they_are() -> None:
    with RefusedLines() as refused:
        tracemalloc.start()
        for start in range(0, 200_000, 500):
            refused.add([Rejected(start + n, f"line {start + n} is bad") for n in range(500)])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert refused.count == 200_000
        assert sum(1 for _ in refused) == 200_000
        assert peak < 4 << 20
