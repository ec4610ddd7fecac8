"""What counts as a word, on both databases and in memory: letters and digits, Latin letters without accents."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Split a text into its words, as SQLite's tokenizer does."""
    return _WORD.findall(text if text.isascii() else "".join(map(_plain, text)))


@cache
def _plain(letter: str) -> str:
    base = unicodedata.normalize("NFKD", letter)[0]
    return base if base.isascii() and base.isalpha() else letter
