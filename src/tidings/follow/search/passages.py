"""The passage of a text that shows best why it was found, with the found words between two marks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tidings.model.query_tree import Words
from tidings.model.words import forms, is_dense, places, stem, tokens

OPEN, CLOSE = "\x02", "\x03"
PASSAGE_CHARS = 240
LEAD_CHARS = 60
SPANS_REMEMBERED_MAX = 20_000
TEXT_CHARS_MAX = 20_000
"""Of a longer text only the beginning is looked through."""
_UNMARKED = str.maketrans("", "", OPEN + CLOSE)


class WordPlace(NamedTuple):
    """Where a wanted word stands."""

    start: int
    end: int
    word: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The words of a query, as they are found in texts of one language and one field."""

    stems: frozenset[str]
    exact: frozenset[str]
    prefixes: tuple[str, ...]
    language: str | None = None
    _met: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is wanted."""
        return not (self.stems or self.exact or self.prefixes)

    def met(self, span: str) -> str:
        """Return the wanted token that stands in a piece of text, or nothing."""
        token = self._met.get(span)
        if token is None:
            # Most words of a text repeat, and folding and stemming one takes far longer than looking it up.
            if len(self._met) >= SPANS_REMEMBERED_MAX:
                self._met.clear()
            found = (span.lower(),) if span.isascii() and span.isalnum() else tokens(span)
            token = self._met[span] = next((each for each in found if self._is_met(each)), "")
        return token

    def _is_met(self, token: str) -> bool:
        if token in self.exact or (self.prefixes and token.startswith(self.prefixes)):
            return True
        return not self.stems.isdisjoint(forms(token, self.language))


@lru_cache(maxsize=64)
def wanted(parts: tuple[Words, ...], field: str, language: str | None) -> Wanted:
    """Gather what is wanted in a field."""
    stems: set[str] = set()
    exact: set[str] = set()
    prefixes: list[str] = []
    for part in parts:
        found = tokens(part.text) if part.field in ("", field) else []
        if part.is_prefix and found:
            prefixes.append(found.pop())
            exact.update(found)
        elif len(found) == 1:
            stems.add(stem(found[0], language))
        else:
            exact.update(found)
    return Wanted(frozenset(stems), frozenset(exact), tuple(prefixes), language)


def marked(text: str, words: Wanted) -> str | None:
    """Mark every wanted word of a text; None where there is none."""
    found = list(_found(text, words))
    return _with_marks(text, found, 0, len(text)) if found else None


def passage(text: str, words: Wanted) -> str | None:
    """Return the passage with the most different words, marked; None where no word is wanted."""
    text = text[:TEXT_CHARS_MAX]
    found = list(_found(text, words))
    if not found:
        return None
    start = max(0, _best_start(found) - LEAD_CHARS)
    start, end = _whole_words(text, start, min(len(text), start + PASSAGE_CHARS))
    body = _with_marks(text, [each for each in found if start <= each.start and each.end <= end], start, end)
    return f"{'…' if start else ''}{body.strip()}{'…' if end < len(text) else ''}"


def beginning(text: str) -> str:
    """Return how a text begins."""
    _, end = _whole_words(text, 0, min(len(text), PASSAGE_CHARS))
    return text[:end].translate(_UNMARKED).strip() + ("…" if end < len(text) else "")


def _found(text: str, words: Wanted) -> Iterator[WordPlace]:
    if words.is_empty:
        return
    for start, end in places(text):
        span = text[start:end]
        if is_dense(span):
            yield from _dense_found(span, start, words)
            continue
        met = words.met(span)
        if met:
            yield WordPlace(start, end, met)


def _dense_found(run: str, offset: int, words: Wanted) -> Iterator[WordPlace]:
    """Find pairs and single letters, and join those that touch."""
    start = end = -1
    for n in range(len(run)):
        length = next((size for size in (2, 1) if n + size <= len(run) and _is_dense_met(run[n : n + size], words)), 0)
        if length and n > end >= 0:
            yield WordPlace(offset + start, offset + end, run[start:end])
            start = end = -1
        if length:
            start, end = (n if start < 0 else start), max(end, n + length)
    if end > 0:
        yield WordPlace(offset + start, offset + end, run[start:end])


def _is_dense_met(letters: str, words: Wanted) -> bool:
    return letters in words.exact or letters in words.stems or (bool(words.prefixes) and letters in words.prefixes)


def _best_start(found: list[WordPlace]) -> int:
    room = PASSAGE_CHARS - LEAD_CHARS
    best, best_worth = found[0].start, 0
    # Bounded on both sides: a word such as "the" may stand in a text thousands of times.
    for n, first in enumerate(found[:200]):
        inside = [each for each in found[n : n + 40] if each.end <= first.start + room]
        worth = 10 * len({each.word for each in inside}) + len(inside)
        if worth > best_worth:
            best, best_worth = first.start, worth
    return best


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Move both ends to the next space, if one is near."""
    if start:
        gap = text.find(" ", start, start + LEAD_CHARS // 2)
        start = gap + 1 if gap >= 0 else start
    if end < len(text):
        gap = text.rfind(" ", end - LEAD_CHARS // 2, end)
        end = gap if gap >= 0 else end
    return start, end


def _with_marks(text: str, found: list[WordPlace], start: int, end: int) -> str:
    pieces: list[str] = []
    for place in found:
        pieces += [text[start : place.start].translate(_UNMARKED), OPEN, text[place.start : place.end], CLOSE]
        start = place.end
    return "".join([*pieces, text[start:end].translate(_UNMARKED)])
