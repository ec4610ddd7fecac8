"""Words as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.words import TOKEN_CHARS_MAX, forms, stem, tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("C++ and C# on .NET", ["c++", "and", "c#", "on", ".net"]),
        ("C++17, F#, Notepad++.", ["c++17", "f#", "notepad++"]),
        ("Node.js or nodejs", ["node.js", "or", "nodejs"]),
        ("thanks @dang, see #rust", ["thanks", "@dang", "see", "#rust"]),
        ("someone@example.com", ["someone", "example.com"]),
        ("16GB at 4.5GHz for $5m, 100%", ["16gb", "at", "4.5ghz", "for", "$5m", "100%"]),
        ("Ask HN: who is hiring?", ["ask", "hn", "who", "is", "hiring"]),
        ("at 10:30, std::vector<int>", ["at", "10", "30", "std", "vector", "int"]),
        ("The end. The start... e.g. here", ["the", "end", "the", "start", "e.g", "here"]),
        ("don't snake_case", ["don", "t", "snake", "case"]),
        ("Crème Brûlée, STRASSE Straße, Łódź", ["creme", "brulee", "strasse", "strasse", "lodz"]),
        ("cafe\u0301", ["cafe"]),
        ("Ёлка й", ["елка", "й"]),
        ("日本語", ["日本", "本語"]),
        ("C言語で 1", ["c", "言語", "語で", "1"]),
        ("한국어", ["한국", "국어"]),
        ("字", ["字"]),
        ("ＡＢＣ １２", ["abc", "12"]),
        ("Foo™ ½", ["foo", "1", "2"]),
        ("", []),
        ("\0 -- _ . @ # +", []),
    ],
)
def test_a_text_is_split_into_words_as_people_write_them(text: str, found: list[str]) -> None:
    assert tokens(text) == found


@given(st.text(max_size=200) | st.text("aZ.#@+%$_ 1ßéİŉǅ日本ー가々ก9\u0301\u3099が\n", max_size=200))
def test_tokens_split_again_stay_as_they_are(text: str) -> None:
    found = tokens(text)

    assert tokens(" ".join(found)) == found
    assert all(token and " " not in token for token in found)


@given(st.text(st.characters(max_codepoint=127), max_size=200))
def test_the_quick_way_for_plain_text_splits_as_the_thorough_one(text: str) -> None:
    # The last letter keeps the whole text from being plain, and is no part of any word.
    assert tokens(text) == tokens(text + " ⁂")


def test_an_endless_word_is_cut() -> None:
    assert [len(token) for token in tokens("x" * 5_000 + " y")] == [TOKEN_CHARS_MAX, 1]


@pytest.mark.parametrize(
    ("token", "found"),
    [
        ("running", ("run",)),
        ("node.js", ("node.js", "node", "js")),
        ("#hashtags", ("#hashtags", "hashtag")),
        ("@dang", ("@dang", "dang")),
        ("c++", ("c++",)),
        ("c++17", ("c++17", "c++")),
        ("notepad++", ("notepad++", "notepad")),
        ("3.5", ("3.5",)),
        ("$5m", ("$5m", "5m")),
        ("日本", ("日本", "日", "本")),
    ],
)
def test_a_token_is_found_by_its_stem_and_by_the_words_inside(token: str, found: tuple[str, ...]) -> None:
    assert forms(token) == found


@pytest.mark.parametrize(
    ("token", "language", "found"),
    [
        ("compilers", None, "compil"),
        ("compilers", "en-GB", "compil"),
        ("häuser", "de", stem("häusern", "de")),
        ("maisons", "fr", "maison"),
        ("книги", "ru", stem("книгу", "ru")),
        ("compilers", "ja", "compilers"),
        ("16gb", "en", "16gb"),
    ],
)
def test_words_are_stemmed_in_the_language_of_the_text(token: str, language: str | None, found: str) -> None:
    assert stem(token, language) == found
