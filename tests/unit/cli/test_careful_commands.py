"""Commands that only read leave nothing behind; one that forgets asks first; an item may be called by its number."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.support.commands import tidings

HN = "[pipelines.hacker_news]\nbase_url = 'http://127.0.0.1:1/v0'\n"


def uploaded(*stories: dict[str, object]) -> None:
    sent = tidings("upload", "hacker_news", "-", given=json.dumps(stories).encode())
    assert sent.code == 0, sent.err
    assert tidings("work", "--until-idle").code == 0


def story(number: int, **changes: object) -> dict[str, object]:
    return {"id": number, "type": "story", "by": "ada", "title": "A title", "score": 1, "time": 1_700_000_000} | changes


@pytest.mark.parametrize(
    "command", ["status", "items", "dead list", "search word", "status --json", "dead", "token list", "tombstones list"]
)
def test_reading_in_an_empty_folder_creates_nothing(home: Path, command: str) -> None:
    assert tidings(*command.split()).code == 0
    assert tidings("explain", "1").code == 1
    assert os.listdir(home) == []


def test_a_backup_of_nothing_is_refused(home: Path) -> None:
    ended = tidings("backup", "copy.db")
    assert (ended.code, "there is no database at" in ended.err) == (1, True)
    assert os.listdir(home) == []


def test_a_replay_of_everything_must_be_asked_for(home: Path) -> None:
    (home / "tidings.toml").write_text(HN)
    uploaded(story(1))
    refused = tidings("replay", "hacker_news")
    assert (refused.code, "--all" in refused.err) == (2, True)
    assert "1 items will be" in tidings("replay", "hacker_news", "--all").out


def test_an_item_may_be_called_by_its_number(home: Path) -> None:
    (home / "tidings.toml").write_text(HN)
    uploaded(story(1))
    (item,) = json.loads(tidings("items", "--json").out)

    by_number, by_name = tidings("explain", str(item["id"])), tidings("explain", "hacker_news", "item", "1")
    assert (by_number.code, by_number.out) == (0, by_name.out)
    moved = tidings("transition", str(item["id"]), "mark_failed")
    assert (moved.code, "failed" in moved.out) == (0, True), moved.err
    assert "there is no item 99" in tidings("explain", "99").err
    assert "name the item" in tidings("explain", "hacker_news", "item").err


def test_dead_letters_are_grouped_by_sort_and_forgotten_only_on_purpose(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "tidings.toml").write_text(HN)
    addresses = [story(number, url=f"nonsense {number * 7919}") for number in range(1, 9)]
    uploaded(*addresses, story(100, type="spaceship"))
    monkeypatch.setenv("TIDINGS_CLOCK_OFFSET_MS", str(25 * 3_600_000))  # too late to be tried again
    assert tidings("work", "--until-idle").code == 0
    groups = json.loads(tidings("dead", "list", "--json").out)
    counts = [group["count"] for group in groups]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == 9
    assert len(groups) <= 2

    refused = tidings("dead", "purge", "--all")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert sum(group["count"] for group in json.loads(tidings("dead", "list", "--json").out)) == sum(counts)
    assert tidings("dead", "purge", "--all", "--yes").code == 0
    assert json.loads(tidings("dead", "list", "--json").out) == []


@pytest.mark.parametrize(
    "command",
    ["items --pipeline nope", "items --standing ded", "dead revive --pipeline nope", "search --pipeline nope x"],
)
def test_a_filter_that_names_nothing_known_is_an_error(home: Path, command: str) -> None:
    (home / "tidings.toml").write_text(HN)
    ended = tidings(*command.split())
    assert ended.code == 2
    assert "nope" in ended.err or "ded" in ended.err


def test_status_says_that_nothing_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources are healthy as of their last look; without a poller there is no next one."""
    (home / "tidings.toml").write_text(HN)
    uploaded(story(1))
    monkeypatch.setenv("TIDINGS_CLOCK_OFFSET_MS", "600000")

    shown = tidings("status").out
    assert "no poller: sources are not asked" in shown
    assert "no worker: items are not processed" in shown
