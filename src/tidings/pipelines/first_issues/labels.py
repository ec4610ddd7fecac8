"""Finds the label people meant: lists are written by hand, and GitHub answers an unknown label with an empty list."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LabelStatus = Literal["exact", "respelled", "partial", "unknown", "missing"]
"""exact: as listed. respelled: found under another spelling. partial: only some of several. unknown: no such label.
missing: the list names none, so a usual one is tried."""

USUAL_LABEL = "good first issue"
"""What GitHub itself offers every repository for this purpose."""

_SHORTCODE = re.compile(r":[a-z0-9_+]+:")
_SEPARATORS = re.compile(r"[\s\-_]+")
_SPLIT = re.compile(r"\s*[,;]\s*")


@dataclass(frozen=True, slots=True)
class LabelMatch:
    """The real labels, all of which an issue must carry, and how they were found."""

    names: tuple[str, ...]
    status: LabelStatus
    note: str | None = None


def match_label(listed: str | None, real: Sequence[str]) -> LabelMatch:
    """Find the repository's own label for a listed one: exact first, then by looser spelling, then part by part."""
    if not listed or not listed.strip():
        return _for_none_listed(real)
    whole = _find(listed, real)
    if whole is not None:
        return _told(listed, (whole,))
    wanted = [part for part in _SPLIT.split(listed) if part]
    found = tuple(dict.fromkeys(name for part in wanted if (name := _find(part, real)) is not None))
    if not found:
        return LabelMatch((), "unknown", f"no label of the repository is like {listed!r}")
    if len(found) < len(wanted):
        return LabelMatch(found, "partial", f"of {listed!r} the repository knows only {_shown(found)}")
    return LabelMatch(found, "respelled", f"{listed!r} means {_shown(found)}")


def _for_none_listed(real: Sequence[str]) -> LabelMatch:
    usual = _find(USUAL_LABEL, real)
    names = () if usual is None else (usual,)
    choice = f"{_shown(names)} is used" if names else f"the repository has no {USUAL_LABEL!r} either"
    return LabelMatch(names, "missing", f"the list names no label; {choice}")


def _told(listed: str, names: tuple[str, ...]) -> LabelMatch:
    # GitHub compares labels without regard to case, so another case is no other spelling.
    if listed.strip().casefold() == names[0].casefold():
        return LabelMatch(names, "exact")
    return LabelMatch(names, "respelled", f"{listed!r} is spelled {_shown(names)} on GitHub")


def _find(wanted: str, real: Sequence[str]) -> str | None:
    for spelling in (_plain, folded, squashed):
        meant = spelling(wanted)
        if not meant:
            continue
        for name in real:
            if spelling(name) == meant:
                return name
    return None


def _plain(label: str) -> str:
    return label.strip().casefold()


def folded(label: str) -> str:
    """Drop what varies between spellings: case, hyphens, emoji and their shortcodes."""
    text = _SHORTCODE.sub(" ", unicodedata.normalize("NFKC", label).casefold())
    kept = "".join(" " if _is_picture(character) else character for character in text)
    return _SEPARATORS.sub(" ", kept).strip()


def squashed(label: str) -> str:
    """Keep letters and digits only."""
    return "".join(character for character in folded(label) if character.isalnum())


def _is_picture(character: str) -> bool:
    return unicodedata.category(character) in ("So", "Sk", "Cf", "Mn", "Me")


def _shown(names: Sequence[str]) -> str:
    return " and ".join(repr(name) for name in names)
