"""The page on the search language names every qualifier, and each of its examples can be searched for."""

from __future__ import annotations

import re

import pytest
from tests.support.environment import ROOT

from tidings.model.query import parse
from tidings.model.vocabulary import EVERYWHERE, vocabulary_of
from tidings.pipelines import bitcoin_news, eu_funding, feeds, first_issues, hacker_news

PAGE = (ROOT / "docs" / "search.md").read_text("utf-8")
PIPELINES = [module.build(module.Settings()) for module in (bitcoin_news, eu_funding, feeds, first_issues, hacker_news)]
NAMES = EVERYWHERE | {name for each in PIPELINES for shown in each.collections for name in shown.attributes}
ROWS = re.findall(r"^\| (`.+?) \| [^|\n]+ \|$", PAGE, re.MULTILINE)
EXAMPLES = [
    query for row in ROWS for query in re.findall(r"`([^`]+)`", row) if query not in {p.name for p in PIPELINES}
]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_qualifier_is_named(name: str) -> None:
    assert re.search(rf"`{name}:", PAGE), f"docs/search.md does not tell of {name}:"


@pytest.mark.parametrize("query", EXAMPLES)
def test_every_example_is_understood(query: str) -> None:
    assert parse(query, vocabulary_of(PIPELINES), now_ms=1_790_000_000_000).warnings == ()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 25
