"""The pages that lead through the code name files that exist."""

from __future__ import annotations

import re

import pytest
from tests.support.environment import ROOT

PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
FOLDERS = (ROOT, ROOT / "src" / "tidings")
"""What names are relative to."""
QUOTED = re.compile(r"`([^`\s]+)`")
FILE = re.compile(r"[\w.*<>-]+(/[\w.*<>-]+)*(/|\.(py|sql|md|toml|html|txt|yml))")
PLACEHOLDER = re.compile(r"<\w+>")
MADE = ("build/",)
"""Written by commands, so not in a fresh clone."""


def named(text: str) -> set[str]:
    """Return the files and folders that a page names in backticks; `<name>` stands for any name."""
    blocks = re.sub(r"(?ms)^```.*?^```$", "", text)
    return {PLACEHOLDER.sub("*", name) for name in QUOTED.findall(blocks) if FILE.fullmatch(name)}


def exists(name: str) -> bool:
    return name.startswith(MADE) or any(next(folder.glob(name.rstrip("/")), None) for folder in FOLDERS)


@pytest.mark.parametrize("page", PAGES)
def test_every_named_file_exists(page: str) -> None:
    names = named((ROOT / page).read_text("utf-8"))

    assert len(names) > 10
    assert sorted(name for name in names if not exists(name)) == []


def test_what_is_a_file_name() -> None:
    text = "`model/item.py` (`settle`), `serve/api/`, `cli/<command>.py`, `items`\n```\n`no/such.py`\n```\n"

    assert named(text) == {"model/item.py", "serve/api/", "cli/*.py"}
    assert exists("model/item.py")
    assert exists("cli/*.py")
    assert not exists("model/no_such.py")
    assert not exists("no_such_room/")
