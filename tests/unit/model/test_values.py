"""What named values are compared by."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.model.publication import Document
from tidings.model.values import number_of, sites_of, text_of, url_words, values_of


@pytest.mark.parametrize(
    ("value", "text"),
    [("Open  Source", "open source"), ("Zürich", "zurich"), (5, "5"), (5.0, "5"), (2.5, "2.5"), (True, "true")],
)
def test_equality_is_of_folded_text(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3.0),
        ("7.5", 7.5),
        ("2026-01-01", 1_767_225_600_000.0),
        ("2026-13-01", None),
        ("story", None),
        ("nan", None),
        (float("inf"), None),
        (True, None),
        (None, None),
    ],
)
def test_only_numbers_and_days_have_an_order(value: Any, number: float | None) -> None:
    assert number_of(value) == number


@pytest.mark.parametrize(
    ("url", "sites"),
    [
        ("https://www.gist.github.com/x", ["gist.github.com", "github.com"]),
        ("http://localhost:80/", ["localhost"]),
        ("http://127.0.0.1/", ["127.0.0.1"]),
        ("http://[broken", []),
        (None, []),
    ],
)
def test_a_site_has_those_above_it(url: str | None, sites: list[str]) -> None:
    assert sites_of(url) == sites


def test_an_address_is_found_by_its_words() -> None:
    assert url_words("https://www.github.com/rust-lang/Rust") == ["github", "com", "rust", "lang", "rust"]


def test_an_attribute_never_stands_for_what_every_document_has() -> None:
    attributes: dict[str, Any] = {"type": "other", "tags": ["a", None, "b"], "none": None}
    document = Document("", "", type="story", attributes=attributes)

    assert values_of(document, "p", "type") == ["story"]
    assert values_of(document, "p", "tags") == ["a", "b"]
    assert (
        values_of(document, "p", "none") == values_of(document, "p", "absent") == values_of(document, "p", "by") == []
    )
