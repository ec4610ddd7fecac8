"""A page that says which test shows something names a test that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.environment import ROOT

NAMED = re.compile(r"`(test_\w+)`")
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if NAMED.search(page.read_text("utf-8"))]


def declared() -> set[str]:
    texts = (file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    return {name for text in texts for name in re.findall(r"def (test_\w+)\(", text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    assert sorted(set(NAMED.findall(page.read_text("utf-8"))) - declared()) == []
