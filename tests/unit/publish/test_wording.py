"""Strangers' text is made harmless and cut to fit, whatever it holds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.publish.wording import clean, escape, fit, units

ANYTHING = st.text(st.characters(categories=["L", "M", "N", "P", "S", "Z", "C"]), max_size=400)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("**bold** _and_ `code`", r"\*\*bold\*\* \_and\_ \`code\`"),
        ("[a link](https://example.org)", r"\[a link\](https://example.org)"),
        ("<@123> <#4> <t:0> <https://x>", "\\<@\u200b123\\> \\<\\#4\\> \\<t:0\\> \\<https://x\\>"),
        ("@everyone", "@\u200beveryone"),
        ("# heading\n> quote\n- item", "\\# heading\n\\> quote\n\\- item"),
        ("||spoiler|| ~~gone~~", r"\|\|spoiler\|\| \~\~gone\~\~"),
        ("back\\slash", "back\\\\slash"),
        ("plain words - with a dash", "plain words - with a dash"),
    ],
)
def test_markup_and_mentions_are_written_to_be_seen(text, written):
    assert escape(clean(text)) == written


def test_hidden_characters_are_dropped():
    assert clean("in\u202evoice\u2066\x00 \u200bt\u00adext\ufeff\U000e0041") == "invoice text"


def test_lone_surrogates_become_readable():
    assert clean("a\ud800b") == "a\ufffdb"


def test_emoji_and_their_joiners_survive():
    family = "👩\u200d👩\u200d👧"
    assert clean(family) == family


def test_text_is_cut_at_a_word_with_an_ellipsis():
    assert fit("one two three four", 12) == "one two…"


def test_an_endless_word_is_cut_at_a_whole_character():
    assert fit("é" * 20 + "e\u0301", 10) == "é" * 9 + "…"
    assert fit("e\u0301" * 10, 6) == "e\u0301e\u0301…"


def test_an_escape_is_never_cut_in_half():
    assert fit("*" * 10, 6) == r"\*\*…"


def test_text_that_fits_is_left_alone():
    assert fit("exactly ten", 11) == "exactly ten"


@given(ANYTHING, st.integers(min_value=0, max_value=500))
def test_fitted_text_never_exceeds_its_limit(text, limit):
    fitted = fit(text, limit)

    assert units(fitted) <= limit
    assert fitted == fitted.strip()
    fitted.encode("utf-8")


@given(ANYTHING)
def test_no_active_markup_or_mention_is_left(text):
    written = escape(clean(text))

    bare = re.sub(r"\\[^0-9A-Za-z\s]", "", written)
    assert not set(bare) & set("*_~|>#`[]<\\")
    assert not re.search("@(?!\u200b)", bare)


@given(ANYTHING)
def test_units_are_those_of_utf16(text):
    assert units(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2
