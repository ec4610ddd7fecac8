"""Characters that break a store or deceive a reader go; everything people write with stays."""

from __future__ import annotations

import pytest

from tidings.model.harmless import storable, visible

KEPT = "Grüße, שלום, नमस्ते, 你好 👩‍🚀 🏳️‍🌈\tand\nlines\r\n"


@pytest.mark.parametrize("text", ["", "plain", KEPT])
def test_what_people_write_stays(text: str) -> None:
    assert storable(text) == text
    assert visible(text) == text


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x0b", "\x1f", "\x7f", "\ud800", "\ufffe"])
def test_what_no_database_holds_goes(character: str) -> None:
    assert storable(f"a{character}b") == "ab"
    assert storable(f"a{character}b", " ") == "a b"
    assert visible(f"a{character}b") == "ab"


@pytest.mark.parametrize("character", ["\x85", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\U000e0041"])
def test_what_no_reader_sees_goes_where_it_is_shown(character: str) -> None:
    assert storable(f"a{character}b") == f"a{character}b"
    assert visible(f"a{character}b") == "ab"
    assert visible(f"a{character}b", " ") == "a b"


def test_a_soft_hyphen_never_parts_a_word() -> None:
    assert visible("re\xadpair", " ") == "repair"
