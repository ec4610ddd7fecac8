"""What the named values of a document are compared by, in the index and in memory alike."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from tidings.model.clock import read_time
from tidings.model.publication import Document
from tidings.model.words import fold

_PIECE = re.compile(r"[^\W_]+")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://(?:www\.)?")
_NUMERIC = re.compile(r"\s*[-+.]?\d")
_DATE = re.compile(r"\d{4}-\d\d")
TEXT_CHARS_MAX = 1_000
OWN_NAMES = frozenset({"type", "by", "score", "time", "pipeline", "url", "site"})
"""What every document can be asked; an attribute of such a name is never meant."""
SITE_LABELS_MIN = 2


def values_of(document: Document, pipeline: str, name: str) -> list[Any]:
    """Return the values a document has under a name; none where it has none. A list has many, of which any counts.

    `url` has none here: it is found by the words of an address (`url_words`), in a row.
    """
    if name not in OWN_NAMES:
        return _present(document.attributes.get(name))
    match name:
        case "type":
            return _present(document.type)
        case "by":
            return _present(document.author)
        case "score":
            return _present(document.score)
        case "time":
            return [document.time_ms]
        case "pipeline":
            return [pipeline]
        case "site":
            return list(sites_of(document.url))
    return []


def text_of(value: Any) -> str:
    """Return how a value is written for `=`: folded, whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return fold(" ".join(str(value).split()))[:TEXT_CHARS_MAX]


def number_of(value: Any) -> float | None:
    """Return what a value is for `<` and `>`: a number, a time in milliseconds, or nothing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not _NUMERIC.match(value):
            return None
        value = read_time(value) if _DATE.match(value) else value
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def url_words(url: str) -> list[str]:
    """Return the words of an address, or of a part of one, without its scheme and `www`."""
    return _PIECE.findall(_SCHEME.sub("", fold(url.strip())))


def sites_of(url: str | None) -> list[str]:
    """Return the site of an address, and those above it: `gist.github.com` and `github.com`."""
    try:
        host = (urlsplit(url or "").hostname or "").removeprefix("www.").rstrip(".")
    except ValueError:
        return []
    labels = host.split(".")
    if labels[-1].isdigit() or len(labels) < SITE_LABELS_MIN:
        return [host] if host else []
    return [".".join(labels[n:]) for n in range(len(labels) - SITE_LABELS_MIN + 1)]


def _present(value: Any) -> list[Any]:
    values: Iterable[Any] = value if isinstance(value, (list, tuple)) else (value,)
    return [each for each in values if each is not None]
