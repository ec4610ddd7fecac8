"""Cuts a text into sentences, in time linear in its length."""

from __future__ import annotations

import re
from typing import Final

ENDS: Final = re.compile(r"[.!?…。！？؟۔]+[\"'”’»)\]]*")
_ABBREVIATIONS = """
    mr mrs ms dr prof sen rep gov gen lt col sgt capt st jr sr inc ltd corp co plc vs no nos jan feb mar apr jun
    jul aug sep sept oct nov dec fig approx dept est eg ie etc al u.s u.k e.u u.n d.c a.m p.m i.e e.g mt ft rev
    hon
"""
ABBREVIATIONS: Final = frozenset(_ABBREVIATIONS.split())
WIDE_ENDS: Final = frozenset("。！？")
"""Ends after which no space is written."""
OPENINGS: Final = frozenset("\"'“‘«([#@$€£¿¡")


def split_sentences(text: str) -> list[str]:
    """Return the sentences in order, without surrounding space; a line end always ends one."""
    return [sentence for line in text.splitlines() for sentence in _split_line(line.strip())]


def _split_line(line: str) -> list[str]:
    sentences, start = [], 0
    for end in ENDS.finditer(line):
        if _is_end(line, start, end):
            sentences.append(line[start : end.end()].strip())
            start = end.end()
    return [sentence for sentence in [*sentences, line[start:].strip()] if sentence]


def _is_end(line: str, start: int, end: re.Match[str]) -> bool:
    """Tell a sentence's end from an abbreviation, an initial, a number or a dot inside a name."""
    after = line[end.end() : end.end() + 2]
    if not after or end.group()[-1] in WIDE_ENDS:
        return True
    if not after[0].isspace() or not (len(after) > 1 and _opens(after[1])):
        return False
    return end.group()[0] != "." or not _is_abbreviation(line[max(start, end.start() - 12) : end.start()])


def _opens(character: str) -> bool:
    """A sentence starts with anything but a small letter or a mark that continues one."""
    return character in OPENINGS or (character.isalnum() and not character.islower()) or not character.isascii()


def _is_abbreviation(before: str) -> bool:
    word = before.split()[-1].lstrip("(\"'“‘") if before.split() else ""
    return word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper())
