"""export, backup, restore and db, on both databases."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests.support.commands import tidings

STORIES = [
    {"id": 1, "type": "story", "by": "ada", "time": 1_700_000_000, "title": "=1+1 is two", "score": 3, "kids": [2]},
    {"id": 2, "type": "comment", "by": "bob", "time": 1_700_000_100, "text": "Is it, <i>really</i>?", "parent": 1},
    {"id": 3, "type": "job", "by": "eve", "time": 1_700_000_200, "title": "We hire, and say so\nin two lines"},
]


@pytest.fixture
def filled(home: Path, database_url: str) -> Path:
    """A home whose database holds three items of Hacker News, worked through."""
    (home / "tidings.toml").write_text(
        f'database_url = "{database_url}"\n[pipelines.hacker_news]\nbase_url = "http://127.0.0.1:1/v0"\n'
    )
    (home / "items.json").write_text(json.dumps(STORIES))
    assert tidings("upload", "hacker_news", "items.json").code == 0
    assert tidings("work", "--until-idle").code == 0
    return home


def test_everything_published_is_exported_line_by_line(filled: Path) -> None:
    ended = tidings("export", "hacker_news")
    cards = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == 0
    assert [card["id"] for card in cards] == [3, 2, 1]
    assert cards[2]["title"] == "=1+1 is two"


def test_a_table_disarms_formulas(filled: Path) -> None:
    ended = tidings("export", "hacker_news", "--format", "csv", "--collection", "items")
    rows = list(csv.DictReader(io.StringIO(ended.out, newline="")))
    assert [row["id"] for row in rows] == ["3", "2", "1"]
    assert rows[2]["title"] == "'=1+1 is two"
    assert rows[2]["kids"] == "[2]"
    assert rows[0]["title"].splitlines() == ["We hire, and say so", "in two lines"]


def test_several_collections_are_told_apart(home: Path) -> None:
    (home / "tidings.toml").write_text("[pipelines.first_issues]\n")
    assert tidings("export", "first_issues").code == 0
    refused = tidings("export", "first_issues", "--format", "csv")
    assert (refused.code, "--collection repos or issues" in refused.err) == (2, True)
    assert tidings("export", "first_issues", "--format", "csv", "--collection", "deliveries").code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nope",), "on are hacker_news"),
        (("hacker_news", "--format", "xml"), "jsonl or csv"),
        (("hacker_news", "--collection", "songs"), "it has items"),
    ],
)
def test_a_wrong_wish_is_refused(arguments: tuple[str, ...], says: str, home: Path) -> None:
    (home / "tidings.toml").write_text("[pipelines.hacker_news]\n")
    ended = tidings("export", *arguments)
    assert (ended.code, says in ended.err) == (2, True)


def test_a_backup_comes_back_elsewhere(filled: Path) -> None:
    before = tidings("export", "hacker_news").out
    made = tidings("backup", "kept.db", "--json")
    assert json.loads(made.out)["items"] == 3
    assert tidings("backup", "kept.db").code == 2
    assert tidings("backup", "kept.db", "--force").code == 0
    occupied = tidings("restore", "kept.db")
    assert (occupied.code, "is not empty" in occupied.err) == (2, True)
    (filled / "tidings.toml").write_text("database_url = 'sqlite:///other.db'\n[pipelines.hacker_news]\n")
    restored = tidings("restore", "kept.db")
    assert restored.code == 0, restored
    for word in ("3 items", "missing:", "healed:", "repeated:"):
        assert word in restored.out
    assert tidings("export", "hacker_news").out == before
    assert "1 found" in tidings("search", "two type:story").out


def test_a_bad_backup_leaves_no_database_behind(home: Path) -> None:
    (home / "tidings.toml").write_text("[pipelines.hacker_news]\n")
    (home / "text.db").write_text("no backup " * 1000)
    assert tidings("restore", "text.db").code == 1
    assert tidings("restore", "nowhere.db").code == 2
    assert not (home / "tidings.db").exists()


def test_shelf_and_index_are_rebuilt_the_same(filled: Path) -> None:
    before, found = tidings("export", "hacker_news").out, tidings("search", "really").out
    for what in ("shelf", "index"):
        ended = tidings("db", "rebuild", what, "--json")
        assert (ended.code, json.loads(ended.out)) == (0, {"shown": 3})
    assert tidings("export", "hacker_news").out == before
    assert tidings("search", "really").out == found


def test_the_schema_is_brought_up_to_date_once(home: Path) -> None:
    first, second = tidings("db", "migrate", "--json"), tidings("db", "migrate")
    assert json.loads(first.out)["applied"]
    assert "up to date" in second.out
