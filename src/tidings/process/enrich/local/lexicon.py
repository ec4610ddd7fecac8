"""The words the local default knows: reads `lexicon.txt` and finds its entries in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

TOKEN: Final = re.compile(r"(?<![\w)])[+\-−](?=\d)|\d[\d,.]*%?|[^\W\d_]+(?:['&.][^\W\d_]+)*|[$.,;:!?()|—–]")
"""A sign before a number, a number, a word, or a mark that ends a clause. Every branch is linear in the text."""

CLAUSE_ENDS: Final = frozenset(".;:!?()|—–")
SIGNS: Final = {"+": 1.0, "-": -1.0, "−": -1.0, "off": -1.0}
"""What stands before a percentage and tells its direction."""
SCALES: Final = {
    **dict.fromkeys(("k", "thousand"), 1e3),
    **dict.fromkeys(("m", "mn", "mln", "million"), 1e6),
    **dict.fromkeys(("b", "bn", "bln", "billion"), 1e9),
}


class LexiconEntry(NamedTuple):
    """What one word or phrase does."""

    role: str
    weight: float


class LexiconMatch(NamedTuple):
    """An entry found in a text, or a number: where it starts and ends, in tokens."""

    role: str
    weight: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Entries by their first word, the longest phrase first."""

    by_first_word: dict[str, tuple[tuple[tuple[str, ...], LexiconEntry], ...]]

    def find(self, tokens: list[str]) -> list[LexiconMatch]:
        """Mark every entry, number and clause end, the longest match first, none overlapping."""
        marks: list[LexiconMatch] = []
        at = 0
        while at < len(tokens):
            mark = self._match(tokens, at)
            if mark is not None:
                marks.append(mark)
            at = mark.end if mark is not None else at + 1
        return marks

    def _match(self, tokens: list[str], at: int) -> LexiconMatch | None:
        token = tokens[at]
        for words, entry in self.by_first_word.get(token, ()):
            end = at + len(words)
            if len(words) == 1 or tuple(tokens[at:end]) == words:
                return LexiconMatch(entry.role, entry.weight, at, end)
        if token in CLAUSE_ENDS:
            return LexiconMatch("break", 0.0, at, at + 1)
        if token in SIGNS and at + 1 < len(tokens) and tokens[at + 1].endswith("%"):
            return LexiconMatch("signed", SIGNS[token], at, at + 2)
        return _number(tokens, at) if token[0].isdigit() else None


def _number(tokens: list[str], at: int) -> LexiconMatch | None:
    """Read a number and the scale behind it, "4.2 mn"; None when it is no number after all, such as 1.2.3."""
    try:
        value = float(tokens[at].rstrip("%.,").replace(",", ""))
    except ValueError:
        return None
    scale = SCALES.get(tokens[at + 1]) if at + 1 < len(tokens) else None
    return LexiconMatch("number", value * (scale or 1.0), at, at + (1 if scale is None else 2))


def tokenize(text: str) -> list[str]:
    """Cut a text into lower-case words, numbers and clause ends; possessives lose their ending."""
    return [token.removesuffix("'s") for token in TOKEN.findall(text.lower().replace("’", "'"))]


@cache
def general() -> Lexicon:
    """The words of markets at large."""
    return _index(_sections("general"))


@cache
def crypto() -> Lexicon:
    """The words of markets, with what they mean where crypto is spoken of."""
    return _index(_sections("general") | _sections("crypto"))


def _index(entries: dict[tuple[str, ...], LexiconEntry]) -> Lexicon:
    grouped: dict[str, list[tuple[tuple[str, ...], LexiconEntry]]] = {}
    for words, entry in entries.items():
        grouped.setdefault(words[0], []).append((words, entry))
    return Lexicon({first: tuple(sorted(rows, key=lambda row: -len(row[0]))) for first, rows in grouped.items()})


@cache
def _sections(part: str) -> dict[tuple[str, ...], LexiconEntry]:
    """Read the entries of one part of the file: "general" or "crypto"."""
    entries: dict[tuple[str, ...], LexiconEntry] = {}
    role, weight, current = "", 0.0, ""
    for line in files(__package__).joinpath("lexicon.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            *prefix, role, number = line.strip("[]").split()
            current, weight = (prefix or ["general"])[0], float(number)
        elif line and not line.startswith("#") and current == part:
            entries |= {tuple(tokenize(term)): LexiconEntry(role, weight) for term in _terms(line)}
    return entries


def _terms(line: str) -> list[str]:
    """Split a line into terms and write out their endings."""
    return [form for term in line.split(",") if term.strip() for form in _forms(term.strip())]


def _forms(term: str) -> list[str]:
    head, opening, rest = term.partition("(")
    endings, _, tail = rest.partition(")")
    return [head + tail] + [head + ending + tail for ending in endings.split("|") if opening]
