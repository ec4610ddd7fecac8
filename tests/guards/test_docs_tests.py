"""A page that says which test shows something names a test that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.environment import ROOT

DEFAULT = re.compile(r"Tests\s+without\s+a\s+path\s+stand\s+in\s+`(tests/[\w/]+\.py)`")
SHORT = re.compile(r"`unit:`\s+stands\s+for\s+`(tests/[\w/]+/)`")
PLACED = re.compile(r"`((?:unit:|tests/)[\w/]+\.py)`:?|`(test_\w+)`|(;)")
NAMED = re.compile(r"`(test_\w+)`")
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if NAMED.search(page.read_text("utf-8"))]


def declared() -> set[str]:
    texts = (file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    return {name for text in texts for name in re.findall(r"def (test_\w+)\(", text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    assert sorted(set(NAMED.findall(page.read_text("utf-8"))) - declared()) == []


def placed(text: str) -> list[tuple[str, str]]:
    """Return each test that the tables name, with the file it is said to stand in: the one before it."""
    default = DEFAULT.search(text)
    if default is None:
        return []
    short, found = SHORT.search(text), []
    for line in text.splitlines():
        file = default[1]
        for path, name, _ in PLACED.findall(line) if line.startswith("|") else ():
            if path:
                file = path.replace("unit:", short[1] if short else "")
            elif name:
                found.append((file, name))
            else:
                file = default[1]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_stands_where_a_page_says(page: Path) -> None:
    wrong = [
        (file, name)
        for file, name in placed(page.read_text("utf-8"))
        if f"def {name}(" not in (ROOT / file).read_text("utf-8")
    ]
    assert wrong == []


def test_the_pages_of_the_four_pipelines_have_a_table() -> None:
    for name in ("bitcoin-news", "hacker-news", "eu-funding", "first-issues"):
        assert len(placed((ROOT / f"docs/{name}.md").read_text("utf-8"))) > 20
