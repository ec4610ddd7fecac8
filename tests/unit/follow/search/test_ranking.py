"""Which hit is better, why, and what is shown of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.search import START_MS, an_entry, an_index, keys

from tidings.follow.search.passages import CLOSE, OPEN, PASSAGE_CHARS
from tidings.model.clock import DAY_MS
from tidings.model.query_tree import AllOf, AnyOf, Compare, Not, Part, Words


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param({"title": "Rust is here"}, {"title": "Zig is here", "text": "Rust"}, id="title over text"),
        pytest.param({"title": "Rust news"}, {"title": "Rusting news"}, id="exact over stemmed"),
        pytest.param({"title": "Rust", "score": 400}, {"title": "Rust", "score": 2}, id="score"),
        pytest.param(
            {"title": "Rust", "time_ms": START_MS}, {"title": "Rust", "time_ms": START_MS - 900 * DAY_MS}, id="age"
        ),
        pytest.param({"title": "Rust", "score": 1}, {"title": "A", "text": "rust", "score": 50}, id="words over score"),
    ],
)
def test_the_better_hit_comes_first(better: dict[str, Any], worse: dict[str, Any]) -> None:
    fillers = [an_entry(n, "Something else") for n in range(10, 20)]
    for first, second in ((1, 2), (2, 1)):
        pair = [an_entry(first, **{"time_ms": START_MS, **better}), an_entry(second, **{"time_ms": START_MS, **worse})]
        assert keys(an_index(*pair, *fillers), Words("rust"))[0] == str(first)


def test_the_rank_is_explained() -> None:
    index = an_index(an_entry(1, "Rusting", "the rust compiler", score=9))

    explained = index.search(AllOf((Words("rust"), Words("comp", is_prefix=True))), explain=True).hits[0].explanation

    assert explained is not None
    assert "score 1.35" in explained
    assert "rust: in the title by its stem, in the text" in explained
    assert "comp: in the text by its beginning" in explained
    assert index.search(Words("rust")).hits[0].explanation is None


@pytest.mark.parametrize(
    ("root", "title", "snippet"),
    [
        (Words("rust"), "About <Rust>", "a [rust] compiler runs"),
        (Words("run"), None, "a rust compiler [runs]"),
        (Words("rust compiler"), "About <Rust>", "a [rust] [compiler] runs"),
        (Words("comp", is_prefix=True), None, "a rust [compiler] runs"),
        (Words("rust", "title"), "About <Rust>", "About [Rust]"),
        (AllOf((Words("compiler"), Not(Words("zig")))), None, "a rust [compiler] runs"),
        (Compare("pipeline", "=", "hacker_news"), None, "a rust compiler runs"),
    ],
)
def test_found_words_are_marked(root: Part, title: str | None, snippet: str) -> None:
    hit = an_index(an_entry(1, "About Rust", "a rust compiler runs")).search(root).hits[0]

    assert hit.title == "About Rust"
    assert hit.snippet.replace(OPEN, "[").replace(CLOSE, "]") == snippet
    if title is not None:
        assert hit.passages["title"].replace(OPEN, "<").replace(CLOSE, ">") == title


def test_the_passage_with_the_most_words_is_shown() -> None:
    text = "Rust here. " + "filler words " * 100 + "a rust compiler for wasm. " + "more filler " * 100
    root = AllOf((Words("rust"), Words("compiler"), Words("wasm")))

    snippet = an_index(an_entry(1, "", text)).search(root).hits[0].snippet

    assert snippet.count(OPEN) == 3
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert len(snippet) <= PASSAGE_CHARS + 10


def test_marks_in_a_text_are_not_taken_for_ours() -> None:
    hit = an_index(an_entry(1, "", f"{OPEN}evil{CLOSE} rust")).search(Words("rust")).hits[0]

    assert hit.snippet == f"evil {OPEN}rust{CLOSE}"


def test_words_without_spaces_between_them_are_marked() -> None:
    index = an_index(an_entry(1, "", "これは日本語の文章です"))

    assert index.search(Words("日本語")).hits[0].snippet == f"これは{OPEN}日本語{CLOSE}の文章です"
    assert index.search(Words("文")).hits[0].snippet == f"これは日本語の{OPEN}文{CLOSE}章です"


def test_hits_are_counted_by_type_pipeline_source_and_day() -> None:
    index = an_index(
        an_entry(1, "Rust", type="story", url="https://www.rust-lang.org/x"),
        an_entry(2, "Rust", type="comment"),
        an_entry(3, "Rust", pipeline="feeds", attributes={"source": "The Post"}, time_ms=START_MS - DAY_MS),
        an_entry(4, "Zig", type="story"),
    )

    facets = index.search(Words("rust"), with_facets=True, limit=1).facets

    assert facets == {
        "type": {"story": 1, "comment": 1},
        "pipeline": {"hacker_news": 2, "feeds": 1},
        "source": {"rust-lang.org": 1, "The Post": 1},
        "day": {"2023-11-14": 2, "2023-11-13": 1},
    }
    assert list(facets["day"]) == ["2023-11-14", "2023-11-13"]


@pytest.mark.parametrize(
    ("root", "instead"),
    [
        (Words("compilr"), "compiler"),
        (Words("copmiler"), "compiler"),
        (Words("postgersql"), "postgresql"),
        (Words("postgrsqll"), "postgresql"),
        (AllOf((Words("fast"), Words("compilerr"))), "fast compiler"),
        (Words("fast compilerr"), '"fast compiler"'),
        (AnyOf((Words("compilar"), Words("zzzzzz"))), "compiler zzzzzz"),
    ],
)
def test_a_misspelled_word_gets_a_second_attempt(root: Part, instead: str) -> None:
    index = an_index(an_entry(1, "A fast compiler", "for PostgreSQL"))

    found = index.search(root)

    assert ([hit.key for hit in found.hits], found.instead) == (["1"], instead)
    assert OPEN in found.hits[0].snippet


@pytest.mark.parametrize("root", [Words("zig"), Words("compilxyz"), Not(Words("compilr")), Words("fas")])
def test_other_words_get_none(root: Part) -> None:
    assert an_index(an_entry(1, "A fast compiler")).search(root).instead is None


def test_suggestions_complete_the_last_word_and_name_titles() -> None:
    index = an_index(
        an_entry(1, "Rust in production"),
        an_entry(2, "Rust compiler", "running"),
        an_entry(3, "Ruby", pipeline="feeds"),
    )

    assert index.suggest("learning ru", limit=3) == ["learning rust", "learning ruby", "learning running"]
    assert index.suggest("ru", limit=2, pipeline="feeds") == ["ruby", "Ruby"]
    assert "Rust compiler" in index.suggest("rust comp")
    assert index.suggest("C++ ru", limit=1) == ["C++ rust"]
    assert index.suggest("rust ") == index.suggest("") == index.suggest("zzz") == index.suggest("ru", limit=0) == []


def test_what_shares_the_telling_words_is_similar() -> None:
    index = an_index(
        an_entry(1, "The Rust borrow checker explained", "ownership and lifetimes"),
        an_entry(2, "Lifetimes in Rust", "how the borrow checker sees them"),
        an_entry(3, "Baking bread at home", "the flour and the water"),
        an_entry(4, "More bread", "flour explained"),
    )

    assert index.similar("hacker_news", "item", "1")[0].key == "2"
    assert index.similar("hacker_news", "item", "4", limit=1)[0].key == "3"
    assert index.similar("hacker_news", "item", "99") == []
