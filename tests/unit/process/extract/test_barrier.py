"""A page that stands in an article's place is known for what it is; articles, however short, are left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.process.extract import barrier
from tidings.process.extract.barrier import barrier_of, is_elsewhere
from tidings.process.extract.page import extract_page

CAUSES = {
    "bot check": barrier.BOT_CHECK,
    "javascript": barrier.JAVASCRIPT,
    "consent": barrier.CONSENT,
    "missing": barrier.MISSING,
    "login": barrier.LOGIN,
    "paywall": barrier.PAYWALL,
    "article": None,
}


def pages() -> Iterator[tuple[str, str]]:
    text = Path(__file__).with_name("not_articles.txt").read_text("utf-8")
    for part in text.split("\n=== ")[1:]:
        cause, _, html = part.partition("\n")
        yield cause, html.strip()


PAGES = list(pages())


def test_the_corpus_is_large_enough() -> None:
    counts = Counter(cause for cause, _ in PAGES)

    assert sum(counts.values()) - counts["article"] >= 60
    assert counts.keys() == CAUSES.keys()


@pytest.mark.parametrize(("cause", "html"), PAGES, ids=[f"{cause} {n}" for n, (cause, _) in enumerate(PAGES)])
def test_each_page_is_known_for_what_it_is(cause: str, html: str) -> None:
    extract = extract_page(html, "https://harbour.example/news/bridge")

    assert extract.barrier == barrier_of(html, extract.title, extract.text) == CAUSES[cause]


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [
        ("https://a.example/news/2026/bridge", "https://a.example/", True),
        ("https://a.example/news/2026/bridge", "https://www.a.example", True),
        ("https://a.example/news/2026/bridge", "https://a.example/news/2026/bridge/", False),
        ("https://a.example/", "https://a.example/", False),
        ("https://a.example/news/2026/bridge", "https://a.example/?p=12", False),
    ],
)
def test_a_front_page_is_no_article(asked: str, answered: str, expected: bool) -> None:
    assert is_elsewhere(asked, answered) is expected
