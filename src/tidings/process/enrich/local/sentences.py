"""Cuts a text into sentences: by `sentencex`, told the language that the text seems to be in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sentencex import segment

from tidings.process.enrich.local.language import language_of

INITIAL: Final = re.compile(r"(?:^|\s)[A-Z]\.$")
"""A single capital with a dot, at the end of what was taken for a sentence: a name goes on behind it."""

PIECE_CHARS: Final = 2_000


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """Return the sentences in order, without surrounding space; a line end always ends one."""
    code = language or language_of(text) or "en"
    return [sentence for line in text.splitlines() for sentence in split_line(line, code)]


def split_line(line: str, language: str = "en") -> list[str]:
    """Return the sentences of one line."""
    sentences: list[str] = []
    # Half characters cannot be handed to the library, which reads UTF-8.
    whole = line if line.isascii() else line.encode("utf-8", "replace").decode("utf-8")
    for part in _segments(whole.strip(), language):
        sentence = part.strip()
        if sentences and sentence and INITIAL.search(sentences[-1][-3:]):
            sentences[-1] += f" {sentence}"
        elif sentence:
            sentences.append(sentence)
    return sentences


def _segments(line: str, language: str) -> Iterator[str]:
    """Cut a long line piece by piece: the library's time grows with the square of a Chinese line's length."""
    rest = ""
    for start in range(0, len(line), PIECE_CHARS):
        *whole, rest = list(segment(language, rest + line[start : start + PIECE_CHARS])) or [""]
        yield from whole
        if len(rest) > PIECE_CHARS:
            yield rest
            rest = ""
    yield rest
