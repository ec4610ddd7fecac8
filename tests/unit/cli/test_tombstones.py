"""`tidings tombstones`, from a dead letter that was purged to its corrected upload."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import tidings

BAD = b'{"id": 1, "type": "story", "by": "ada", "time": 1600000000, "title": "One", "score": -3}\n'
GOOD = BAD.replace(b"-3", b"3")


@pytest.fixture
def purged(home: Path) -> Path:
    """A home where a bad upload became a dead letter and was purged."""
    (home / "tidings.toml").write_text('[pipelines.hacker_news]\nbase_url = "http://127.0.0.1:1/v0"\nmax_retries = 1\n')
    tidings("upload", "hacker_news", "-", given=BAD)
    assert tidings("work", "--until-idle").code == 0
    assert tidings("dead", "purge", "--all", "--yes").out == "1 purged\n"
    return home


def test_a_corrected_upload_of_a_purged_dead_letter_is_accepted(purged: Path) -> None:
    assert tidings("upload", "hacker_news", "-", given=BAD).out.startswith("0 accepted (0 new, 0 changed), 1 duplicate")
    assert tidings("upload", "hacker_news", "-", given=GOOD).out.startswith(
        "1 accepted (1 new, 0 changed), 0 duplicate"
    )
    assert tidings("work", "--until-idle").code == 0
    assert "completed" in tidings("explain", "hacker_news", "item", "1").out
    assert tidings("tombstones", "list").out.startswith("no tombstones")


def test_a_tombstone_is_listed_explained_and_lifted(purged: Path) -> None:
    (listed,) = json.loads(tidings("tombstones", "list", "--json").out)
    assert (listed["pipeline"], listed["kind"], listed["key"]) == ("hacker_news", "item", "1")
    explained = tidings("explain", "hacker_news", "item", "1")
    assert explained.code == 1
    assert "tidings tombstones lift hacker_news item 1" in explained.err

    assert tidings("tombstones", "lift", "hacker_news", "item", "1").out == "1 lifted\n"

    assert tidings("upload", "hacker_news", "-", given=BAD).out.startswith("1 accepted (1 new")
    assert tidings("tombstones", "lift", "hacker_news", "item", "1").code == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("list", "--pipeline", "nope"), "no pipeline 'nope'"),
        (("lift", "nope", "--all"), "no pipeline 'nope'"),
        (("lift", "hacker_news"), "say which"),
        (("lift", "hacker_news", "item"), "say which"),
        (("lift", "hacker_news", "item", "1", "--all"), "contradict"),
    ],
)
def test_what_names_no_tombstone_is_refused(purged: Path, arguments: tuple[str, ...], complaint: str) -> None:
    refused = tidings("tombstones", *arguments)

    assert refused.code == 2
    assert complaint in refused.err
