"""What an item is about: its words, weighed. Names count more, words of the lead and of the address less."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from tidings.model.words import stem, tokens

NAME, WORD = 1.5, 1.0
"""In a title. A capital letter marks names; in a headline that capitalizes everything, all words count the same."""
LEAD_NAME, LEAD_WORD, SLUG_WORD = 0.7, 0.3, 0.5
LEAD_CHARS = 300
TITLE_CHARS = 500
TERMS_MAX = 60
_SLUG_WORDS_MIN = 3
_NAME = re.compile(r"\b[^\W\d_a-z][\w'’]+")
_SLUG_PART = re.compile(r"[a-z]{2,}")
_COMMON = frozenset(
    """
    a about after all also amid an and are as at be because been before being but by can could did do does for from get
    gets had has have he her his how i if in into is it its just ll may me more most my new no not now of off on one
    only or other our out over re report reports s said say says she should so t than that the their them then there
    these they this those through to up us ve very via video vs was watch we were what when where which who why will
    with would you your
    """.split()  # noqa: SIM905
)


def weighed_terms(title: str, text: str, url: str, language: str | None = None) -> dict[str, float]:
    """Return the terms of an item with their weights, the heaviest of each; no more than a limit."""
    found: dict[str, float] = {}
    for term, weight in _all_terms(title[:TITLE_CHARS], text[:LEAD_CHARS], url, language):
        if weight > found.get(term, 0):
            found[term] = weight
            if len(found) >= TERMS_MAX:
                break
    return found


def _all_terms(title: str, lead: str, url: str, language: str | None) -> Iterator[tuple[str, float]]:
    yield from _of_text(title, NAME, WORD, language)
    yield from _of_text(_slug(url), SLUG_WORD, SLUG_WORD, language)
    yield from _of_text(lead, LEAD_NAME, LEAD_WORD, language)


def _of_text(text: str, name: float, word: float, language: str | None) -> Iterator[tuple[str, float]]:
    names = {each.lower() for each in _NAME.findall(text)}
    for token in tokens(text):
        if token not in _COMMON and (len(token) > 1 or token.isdigit()):
            yield stem(token, language), name if token in names else word


def _slug(url: str) -> str:
    """Return the words of an address: many name the event in other words than the title does."""
    try:
        parts = urlsplit(url).path.lower().split("/")
    except ValueError:
        return ""
    slugs = [_SLUG_PART.findall(unquote(part)) for part in parts if "-" in part or "_" in part]
    words = max(slugs, key=len, default=[])
    return " ".join(words) if len(words) >= _SLUG_WORDS_MIN else ""
