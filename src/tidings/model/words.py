"""What counts as a word, in the index and in memory alike.

`tokens` splits a text into words as people write them: `C++`, `C#`, `.NET`, `node.js`, `@dang`, `#rust`, `$5m`,
`4.5GHz` and `100%` are one each. Case and the accents of Latin and Greek letters are folded. Chinese, Japanese, Korean
and Thai, which are written without spaces, become pairs of letters.

How a query finds a text:

- One token is found by its stem: the `stem` of the token, in the language of the text, is among the `forms` of the
  text's tokens.
- Several tokens are found where exactly these stand in a row.
- A prefix is the beginning of a token as it is written; after other tokens, of the one behind them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TypeVar

import tantivy

TOKEN_CHARS_MAX = 80
TOKENS_REMEMBERED_MAX = 500_000
V = TypeVar("V")

_TOKEN = re.compile(
    r"""
      [^\W_]+ (?:\.[^\W_]+)* (?:\+\+\d*|%|\#(?!\w))?   # a word, node.js, 4.5ghz; c++ and c++17, 100%, c#
    | (?<![\w@\#]) [@\#] [^\W_] \w*                    # @name, #hashtag
    | [$€£] \d+ (?:\.\d+)* [^\W_]*                     # $5m
    | (?<![\w.]) \. [^\W\d_] [^\W_]*                   # .net
    """,
    re.VERBOSE,
)
_PIECE = re.compile(r"[^\W_]+")
# Letters of scripts without spaces: ideographs, kana, Hangul; Thai, Lao, Burmese, Khmer.
_DENSE = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fffd"
)
_DENSE_RUN = re.compile(f"[{_DENSE}]+")
_WITHOUT_MARK = str.maketrans(
    {"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d", "þ": "th", "ħ": "h", "ё": "е"}
)
_PLACE = re.compile(f"[{_DENSE}]+|(?:(?![{_DENSE}])(?:{_TOKEN.pattern}))", re.VERBOSE)
_ASCII = "".join(letter.lower() if letter.isalnum() or letter in "@#+%$._" else " " for letter in map(chr, range(128)))
_CYRILLIC_START = 0x400
_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}

STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "nb": "norwegian",
    "nn": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish",
}  # fmt: skip
"""The languages that have a stemmer, by their two-letter codes."""
ENGLISH = "english"
NO_STEMMER = ""


def tokens(text: str) -> list[str]:
    """Split a text into its words, folded. Split again, with spaces between them, they stay as they are."""
    found = _ascii_tokens(text) if text.isascii() else _TOKEN.findall(_spaced(fold(text)))
    if len(text) > TOKEN_CHARS_MAX and found and max(map(len, found)) > TOKEN_CHARS_MAX:
        # A cut may end behind a dot, which no token does.
        return [token[:TOKEN_CHARS_MAX].rstrip("._+") if len(token) > TOKEN_CHARS_MAX else token for token in found]
    return found


def _ascii_tokens(text: str) -> list[str]:
    """Split at what is never part of a token, and look closer only where a piece is not plain: three times as fast."""
    pieces = text.translate(_ASCII).replace(". ", " ").split()
    if "".join(pieces).isalnum():
        return pieces
    return [token for piece in pieces for token in ((piece,) if piece.isalnum() else _TOKEN.findall(piece))]


def places(text: str) -> Iterator[tuple[int, int]]:
    """Return where the words of a text begin and end; those of scripts without spaces are whole runs."""
    return (match.span() for match in _PLACE.finditer(text))


def is_dense(token: str) -> bool:
    """Tell whether a token is of a script without spaces."""
    return not token.isascii() and _DENSE_RUN.fullmatch(token) is not None


def fold(text: str) -> str:
    """Return a text in lower case and without accents."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).translate(_FOLDED)


def stem(token: str, language: str | None = None) -> str:
    """Return what a token has in common with its inflections, in a language by its code; English unless told."""
    return _STEMS[stemmer_name(language)][token]


@cache
def stemmer_name(language: str | None) -> str:
    """Name the stemmer of a language (`pt-BR` as `pt`); English where none is told, empty where there is none."""
    if not language:
        return ENGLISH
    return STEMMERS.get(re.split(r"[-_]", language.strip().lower())[0], NO_STEMMER)


def forms(token: str, language: str | None = None) -> tuple[str, ...]:
    """Return by which stems a token of a text is found: its own, and those of the words it is made of."""
    return tuple(_FORMED[stemmer_name(language)][token].split())


def formed(found: Iterable[str], language: str | None = None) -> str:
    """Return the forms of all tokens of a text, with spaces between them."""
    return " ".join(map(_FORMED[stemmer_name(language)].__getitem__, found))


def parts(token: str) -> list[str]:
    """Return the words inside a token: `node` and `js` of `node.js`, `rust` of `#rust`, `c++` of `c++17`."""
    if token.isalnum():
        return list(token) if len(token) == 2 and is_dense(token) else []
    name, plusses, number = token.partition("++")
    if plusses and number:
        return [name + plusses]
    if plusses or token.endswith("#"):
        # C and C++ are not the same, Notepad and Notepad++ are.
        return _PIECE.findall(token) if len(_PIECE.findall(token)[0]) > 2 else []
    if token.replace(".", "").isdigit():
        return []
    if token[0] in "$€£" or token[-1] == "%":
        return [token.strip("$€£%")]
    return _PIECE.findall(token)


def words(text: str) -> list[str]:
    """Split a text into its words, as SQLite's tokenizer does."""
    return _PIECE.findall(text if text.isascii() else "".join(map(_plain, text)))


def spoken(text: str) -> str:
    """Return a text's words with nothing but space between them."""
    return text.translate(_SPACES) if text.isascii() else " ".join(words(text))


class _Folded(dict[int, str]):
    """Each letter's folded form, worked out once."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _folded(chr(code))
        return folded


def _folded(letter: str) -> str:
    # Marks between letters of other scripts would split the word; without them it is still found.
    if unicodedata.category(letter)[0] == "M":
        return ""
    if not letter.isalnum():
        return letter
    plain = unicodedata.normalize("NFKD", letter.casefold()).casefold()
    if ord(plain[0]) < _CYRILLIC_START:
        # Only Latin and Greek lose their accents: a Russian й is no и, a Japanese が no か.
        plain = "".join(each for each in plain if unicodedata.category(each)[0] != "M")
    return unicodedata.normalize("NFC", plain).translate(_WITHOUT_MARK)


def _spaced(text: str) -> str:
    return _DENSE_RUN.sub(_pairs, text)


def _pairs(run: re.Match[str]) -> str:
    letters = run[0]
    return f" {' '.join(letters[n : n + 2] for n in range(max(1, len(letters) - 1)))} "


class _Stems(dict[str, str]):
    """The stem of each token seen, in one language."""

    def __init__(self, stemmer: str) -> None:
        self._analyze: Callable[[str], list[str]] | None = None
        if stemmer:
            builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
            self._analyze = builder.filter(tantivy.Filter.stemmer(stemmer)).build().analyze

    def __missing__(self, token: str) -> str:
        stem = self._analyze(token)[0] if self._analyze is not None and token.isalpha() else token
        return _remembered(self, token, stem)


class _Formed(dict[str, str]):
    """The forms of each token seen, in one language, with spaces between them."""

    def __init__(self, stemmer: str) -> None:
        self._stems = _STEMS[stemmer]

    def __missing__(self, token: str) -> str:
        stems = dict.fromkeys(self._stems[each] for each in (token, *parts(token)))
        return _remembered(self, token, " ".join(stems))


class _PerStemmer(dict[str, V]):
    """One memory for each stemmer, made when it is first needed."""

    def __init__(self, make: Callable[[str], V]) -> None:
        self._make = make

    def __missing__(self, stemmer: str) -> V:
        made = self[stemmer] = self._make(stemmer)
        return made


def _remembered(memory: dict[str, str], token: str, value: str) -> str:
    if len(memory) >= TOKENS_REMEMBERED_MAX:
        memory.clear()
    memory[token] = value
    return value


@cache
def _plain(letter: str) -> str:
    base = unicodedata.normalize("NFKD", letter)[0]
    return base if base.isascii() and base.isalpha() else letter


_FOLDED = _Folded()
_STEMS = _PerStemmer(_Stems)
_FORMED = _PerStemmer(_Formed)
