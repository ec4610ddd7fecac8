"""One query language: read, refused with a pointer to what is wrong, and answered in memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.errors import BadInput
from tidings.model.publication import Document
from tidings.model.query import LENGTH_MAX, PARTS_MAX, Qualifier, Query, Term, matches, parse, point_at

NEW_YEAR_2026_MS = 1_767_225_600_000


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("rust", Term("rust")),
        ("  rust  ", Term("rust")),
        ("-rust", Term("rust", negated=True)),
        ('"memory safety"', Term("memory safety", is_phrase=True)),
        ('-"memory safety"', Term("memory safety", is_phrase=True, negated=True)),
        ("type:story", Qualifier("type", "=", "story")),
        ("TYPE:Story", Qualifier("type", "=", "Story")),
        ("-type:story", Qualifier("type", "=", "story", negated=True)),
        ('by:"two words"', Qualifier("by", "=", "two words")),
        ("score:>10", Qualifier("score", ">", 10.0)),
        ("score:>=10.5", Qualifier("score", ">=", 10.5)),
        ("score:<-3", Qualifier("score", "<", -3.0)),
        ('score:<="7"', Qualifier("score", "<=", 7.0)),
        ("before:2026-01-01", Qualifier("time", "<", NEW_YEAR_2026_MS)),
        ("until:2026-01-01", Qualifier("time", "<", NEW_YEAR_2026_MS)),
        ("after:2026-01-01", Qualifier("time", ">=", NEW_YEAR_2026_MS)),
        ("since:2026-01-01T01:00:00+01:00", Qualifier("time", ">=", NEW_YEAR_2026_MS)),
        ("-after:2026-01-01T00:00:00Z", Qualifier("time", ">=", NEW_YEAR_2026_MS, negated=True)),
        ("deadline:<2026-01-01", Qualifier("deadline", "<", float(NEW_YEAR_2026_MS))),
    ],
)
def test_a_part_is_read(text: str, part: Term | Qualifier) -> None:
    expected = Query(terms=(part,)) if isinstance(part, Term) else Query(qualifiers=(part,))
    assert parse(text) == expected


def test_parts_are_kept_in_order() -> None:
    query = parse('one -two type:x "three four" score:>1')
    assert [term.text for term in query.terms] == ["one", "two", "three four"]
    assert [qualifier.name for qualifier in query.qualifiers] == ["type", "score"]


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_nothing_asked_is_everything(text: str) -> None:
    assert parse(text).is_empty
    assert matches(parse(text), Document("any", "thing"))


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ('rust "memory', 5, "never closed"),
        ('by:"someone', 3, "never closed"),
        ("rust type:", 9, "type: needs a value, such as type:something"),
        ("type: story", 4, "type: needs a value"),
        ('before:""', 6, "before: needs a value"),
        ("rust -", 5, "a minus needs a word behind it"),
        ('rust ""', 5, "empty quotation marks"),
        ("score:>many", 7, "'many' is neither"),
        ("score:>=nan", 8, "needs a finite number"),
        ("score:<inf", 7, "needs a finite number"),
        ("score:>1e999", 7, "needs a finite number"),
        ("score:>2026-99-01", 7, "'2026-99-01' is no date"),
        ("rust before:soon", 12, "'soon' is no date; write one like 2026-01-31"),
        ('before:"soon"', 8, "'soon' is no date"),
        ("a\0b", 1, "NUL"),
        ("x" * (LENGTH_MAX + 1), LENGTH_MAX, "at most 1000 are allowed"),
        ("x " * (PARTS_MAX + 1), 2 * PARTS_MAX, "more than 40 parts"),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text: str, position: int, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(text)
    assert message in str(refused.value)
    assert refused.value.position == position
    _, shown, mark = point_at(text, refused.value).rsplit("\n", 2)
    assert shown == f"  {text}"
    assert mark.index("^") == position + 2


def test_an_error_without_a_place_is_told_alone() -> None:
    assert point_at("rust", BadInput("too busy")) == "too busy"


@given(text=st.text(max_size=60) | st.text(alphabet='ab-": ><=0\n', max_size=40))
def test_any_text_is_read_or_refused_at_a_place_in_it(text: str) -> None:
    refused: BadInput | None = None
    try:
        query = parse(text)
    except BadInput as error:
        refused = error
    if refused is None:
        assert query.is_empty == (not text.strip())
        matches(query, DOCUMENT, "news")
    else:
        assert refused.position is not None
        assert 0 <= refused.position <= len(text)


DOCUMENT = Document(
    title="Rust 2.0, at last",
    text="The borrow checker learns to smile.",
    author="Ferris",
    type="story",
    score=42,
    time_ms=NEW_YEAR_2026_MS,
    attributes={"labels": ["help wanted", "bug"], "deadline": "2026-03-31", "stars": 10, "empty": None},
)


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        ("rust", True),
        ("RUST", True),
        ("rus", False),
        ("rust checker", True),
        ("rust python", False),
        ("-rust", False),
        ("-python", True),
        ('"borrow checker"', True),
        ('"Borrow, Checker!"', True),
        ('"checker borrow"', False),
        ('-"checker borrow"', True),
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
        ("score:>=42", True),
        ("score:<42", False),
        ("score:<=42", True),
        ("before:2026-01-01", False),
        ("after:2026-01-01", True),
        ("time:<2026-01-02", True),
        ('labels:"help wanted"', True),
        ("labels:BUG", True),
        ("labels:feature", False),
        ("-labels:bug", False),
        ("deadline:<2026-04-01", True),
        ("deadline:>2026-04-01", False),
        ("stars:>=10", True),
        ("labels:>3", False),
        ("by:>3", False),
        ("empty:x", False),
        ("-empty:x", True),
        ("unheard:x", False),
        ("rust type:story score:>10 -python", True),
        ("rust type:story score:>100", False),
    ],
)
def test_a_document_in_memory_is_meant_or_not(text: str, is_meant: bool) -> None:
    assert matches(parse(text), DOCUMENT, "news") is is_meant


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [("zurich", True), ("Zürich", True), ("ZÜRICH", True), ("snake", True), ("snake_case", True), ("!!!", False)],
)
def test_words_in_memory_are_the_search_indexs_words(text: str, is_meant: bool) -> None:
    assert matches(parse(text), Document("Rain in Zürich", "about snake_case")) is is_meant


@pytest.mark.parametrize("missing", [{"score": None}, {"author": None}, {"type": None}])
def test_what_a_document_lacks_is_never_meant(missing: dict[str, Any]) -> None:
    document = Document("a title", "a text", **missing)
    assert not matches(parse("score:>0"), document)
    assert not matches(parse("by:none"), document)
    assert not matches(parse("type:none"), document)
