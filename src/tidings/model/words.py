"""What counts as a word, on both databases and in memory: letters and digits, Latin letters without accents."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_WORD = re.compile(r"[^\W_]+")
_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}


def words(text: str) -> list[str]:
    """Split a text into its words, as SQLite's tokenizer does."""
    return _WORD.findall(text if text.isascii() else "".join(map(_plain, text)))


def spoken(text: str) -> str:
    """Return a text's words with nothing but space between them."""
    return text.translate(_SPACES) if text.isascii() else " ".join(words(text))


@cache
def _plain(letter: str) -> str:
    base = unicodedata.normalize("NFKD", letter)[0]
    return base if base.isascii() and base.isalpha() else letter
