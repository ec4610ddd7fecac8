"""Queries answered in memory."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.model.publication import Document
from tidings.model.query import Query, parse
from tidings.model.query_match import matches
from tidings.model.vocabulary import Vocabulary

NEW_YEAR_2026_MS = 1_767_225_600_000
VOCABULARY = Vocabulary(frozenset({"labels", "deadline", "stars", "empty"}))
DOCUMENT = Document(
    title="Rust 2.0, at last",
    text="The borrow checker learns to smile. Written in C++ and node.js.",
    author="Ferris",
    type="story",
    score=42,
    time_ms=NEW_YEAR_2026_MS,
    url="https://www.blog.example.com/rust",
    attributes={"labels": ["help wanted", "bug"], "deadline": "2026-03-31", "stars": 10, "empty": None},
)


def asked(text: str) -> Query:
    return parse(text, VOCABULARY, now_ms=NEW_YEAR_2026_MS)


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        ("", True),
        ("rust", True),
        ("RUST", True),
        ("rus", False),
        ("rus*", True),
        ("rust checker", True),
        ("rust python", False),
        ("rust OR python", True),
        ("(python OR ruby) rust", False),
        ("-rust", False),
        ("-python", True),
        ("-(rust python)", True),
        ("-(rust checker)", False),
        ("smiling", True),
        ("learned", True),
        ('"borrow checker"', True),
        ('"Borrow, Checker!"', True),
        ('"borrow check"', False),
        ('"borrow che*"', True),
        ('"checker borrow"', False),
        ('"last the"', False),
        ("title:rust", True),
        ("text:rust", False),
        ("title:ru*", True),
        ("c++", True),
        ("c", False),
        ("node.js", True),
        ("node", True),
        ("!!!", False),
        ("type:story", True),
        ("type:STORY", True),
        ("type:comment", False),
        ("-type:comment", True),
        ("by:ferris", True),
        ("pipeline:news", True),
        ("pipeline:feeds", False),
        ("score:42", True),
        ("score:>41", True),
        ("score:>42", False),
        ("score:40..42", True),
        ("score:43..", False),
        ("before:2026-01-01", False),
        ("after:2026-01-01", True),
        ("after:1d", True),
        ("before:1h", False),
        ("time:2026-01-01", True),
        ("time:<2026-01-02", True),
        ("site:blog.example.com", True),
        ('labels:"help wanted"', True),
        ("labels:BUG", True),
        ("labels:feature", False),
        ("-labels:bug", False),
        ("deadline:<2026-04-01", True),
        ("deadline:<=2026-03-31", True),
        ("deadline:>2026-03-31", False),
        ("stars:>=10", True),
        ("stars:10", True),
        ("labels:>3", False),
        ("by:>3", False),
        ("empty:x", False),
        ("-empty:x", True),
        ("story:8863", False),
        ("rust type:story score:>10 -python", True),
        ("rust type:story score:>100", False),
    ],
)
def test_a_document_is_meant_or_not(text: str, is_meant: bool) -> None:
    assert matches(asked(text), DOCUMENT, "news") is is_meant


@pytest.mark.parametrize(
    ("text", "is_meant"), [("zurich", True), ("Zürich", True), ("ZÜRICH", True), ("snake_case", True), ("東京", True)]
)
def test_accents_are_folded_and_dense_scripts_are_found(text: str, is_meant: bool) -> None:
    assert matches(asked(text), Document("Rain in Zürich", "about snake_case and 東京都")) is is_meant


def test_words_are_stemmed_in_the_language_of_the_document() -> None:
    assert matches(asked("Häuser"), Document("", "viele Häusern", language="de"))
    assert not matches(asked("running"), Document("", "they run", language="zh"))


@pytest.mark.parametrize("missing", [{"score": None}, {"author": None}, {"type": None}, {"url": None}])
def test_what_a_document_lacks_is_never_meant(missing: dict[str, Any]) -> None:
    document = Document("a title", "a text", **missing)
    for text in ("score:>0", "by:none", "type:none", "url:none", "site:none"):
        assert not matches(asked(text), document)
