"""What counts as a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.words import spoken, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It's C++, isn't_it?", ["It", "s", "C", "isn", "t", "it"]),
        ("naïve Ångström 漢字 x2", ["naive", "Angstrom", "漢字", "x2"]),
        ("\t\x1c\x7f--", []),
        ("", []),
    ],
)
def test_words_are_letters_and_digits_without_accents(text: str, found: list[str]) -> None:
    assert words(text) == found


@given(st.text(max_size=200) | st.text(st.characters(max_codepoint=127), max_size=200))
def test_what_is_spoken_are_the_words(text: str) -> None:
    assert [word for word in spoken(text).split(" ") if word] == words(text)
