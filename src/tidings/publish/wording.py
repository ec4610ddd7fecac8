"""Makes strangers' text harmless and short enough for a chat: no markup, no mentions, no hidden characters."""

from __future__ import annotations

import re
import unicodedata

from tidings.model.harmless import visible
from tidings.model.publication import Notice

ELLIPSIS = "…"
FACT_CHARS_MAX = 1000
READ_CHARS_MAX = 20_000
"""Far above every limit of a chat; what comes behind is not even looked at."""

_LONE = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"[ \t]*\n(?:[ \t]*\n)+")
_MARKUP = frozenset("\\*_~|>#`[]<")
_JOINED = re.compile("[\u200c\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
_BULLET = re.compile(r"[-+] ")


def units(text: str) -> int:
    """Count UTF-16 code units, the strictest of the ways a chat may count."""
    return len(text) + sum(character > "\uffff" for character in text)


def clean(text: str) -> str:
    """Drop what cannot be seen but changes what is shown; keep words, lines and emoji."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")
    # Half of a surrogate pair cannot travel as JSON. A reader should see that something stood there.
    text = visible(_LONE.sub("\ufffd", text))
    return _BLANK_LINES.sub("\n\n", text).strip()


def escape(text: str) -> str:
    """Write text so that a chat shows it as it stands: Markdown escaped, mentions broken."""
    return "".join(_shown(text, at) for at in range(len(text)))


def fit(text: str, limit: int, *, markdown: bool = True) -> str:
    """Clean and escape text, cut at a word boundary to at most `limit` UTF-16 units, ellipsis included."""
    text = clean(text[:READ_CHARS_MAX])
    shown = escape(text) if markdown else text
    if units(shown) <= limit:
        return shown
    kept = text[: _word_end(text, _reach(text, limit - units(ELLIPSIS), markdown))].rstrip(" \n,;:–—-(/")
    return (escape(kept) if markdown else kept) + ELLIPSIS if limit > 0 else ""


def facts(notice: Notice) -> list[tuple[str, str]]:
    """Return the fields that say something, as plain text."""
    pairs = ((one_line(field.name, FACT_CHARS_MAX), clean(field.value)[:FACT_CHARS_MAX]) for field in notice.fields)
    return [(name, value) for name, value in pairs if name and value]


def one_line(text: str, limit: int) -> str:
    """Return plain text on one line, cut at a word: for titles, subjects and labels."""
    return fit(" ".join(clean(text[:READ_CHARS_MAX]).split()), limit, markdown=False)


def _shown(text: str, at: int) -> str:
    """Return one character as it must be written to be seen."""
    character = text[at]
    if character in _MARKUP:
        return "\\" + character
    if character == "@":
        return "@\u200b"
    starts_line = at == 0 or text[at - 1] == "\n"
    return "\\" + character if starts_line and _BULLET.match(text, at) else character


def _reach(text: str, limit: int, markdown: bool) -> int:
    """Return how many characters fit into `limit` units once written."""
    used = 0
    for at in range(len(text)):
        used += units(_shown(text, at) if markdown else text[at])
        if used > limit:
            return at
    return len(text)


def _word_end(text: str, end: int) -> int:
    """Step back to the end of a word, or, inside an endless one, to the end of a whole visible character."""
    if end <= 0 or text[end].isspace():
        return max(end, 0)
    blank = max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))
    if blank > end // 2:
        return blank
    while end > 1 and (_continues(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return end


def _continues(character: str) -> bool:
    return unicodedata.combining(character) != 0 or _JOINED.fullmatch(character) is not None
