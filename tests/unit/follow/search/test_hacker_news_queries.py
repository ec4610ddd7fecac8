"""Sixty questions as people ask them of Hacker News: in an index alone, each as it is parsed."""

from __future__ import annotations

import pytest
from tests.support.questions import CASES, CORPUS, VOCABULARY, Case
from tests.support.search import START_MS, an_index, keys

from tidings.follow.search.index import SearchIndex
from tidings.model.query import parse
from tidings.model.query_tree import AllOf, Part, Words


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    """The corpus, indexed."""
    return an_index(*CORPUS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_a_question_finds_its_answers(index: SearchIndex, case: Case) -> None:
    assert parse(case.text, VOCABULARY, now_ms=START_MS).root == case.root
    assert {int(key) for key in keys(index, case.root)} == case.found


@pytest.mark.parametrize(
    ("root", "first"),
    [
        (Words("github"), "9"),
        (AllOf(tuple(map(Words, ("ask", "hn", "hiring", "2017")))), "2"),
        (Words("hired"), "3"),
        (Words("borrow"), "105"),
    ],
)
def test_the_best_answer_comes_first(index: SearchIndex, root: Part, first: str) -> None:
    assert keys(index, root)[0] == first


def test_by_date_the_newest_answer_comes_first(index: SearchIndex) -> None:
    assert keys(index, Words("rust"), order="newest") == ["5", "102", "101", "4"]
