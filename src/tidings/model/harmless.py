"""Foreign text made harmless: without what cannot be stored, or what a reader cannot see.

HTML is cleaned by `net/sanitizer.py`; this is about characters.
"""

from __future__ import annotations

import re

_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff"
# Controls of the second block; soft hyphens; marks, embeddings and overrides of direction; invisible separators,
# operators and annotations; tag characters, which can hide whole sentences. The joiners U+200C and U+200D stay:
# scripts and emoji need them.
_UNSEEN = (
    "\x80-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
UNSTORABLE = re.compile(f"[{_CONTROLS}]")
HIDDEN = re.compile(f"[{_CONTROLS}{_UNSEEN}]")


def storable(text: str, instead: str = "") -> str:
    """Drop what databases, XML and JSON cannot hold: control characters but tab and line ends, halves of characters."""
    return text if _is_plain(text) else UNSTORABLE.sub(instead, text)


def visible(text: str, instead: str = "") -> str:
    """Drop also what cannot be seen but changes what is shown, such as overrides of a line's direction.

    Soft hyphens stand inside words, so they vanish whatever is put `instead` of the others.
    """
    return text if _is_plain(text) else HIDDEN.sub(instead, text.replace("\xad", ""))


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
