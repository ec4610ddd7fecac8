"""What a feed holds, whichever format it came in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ENTRIES_MAX = 500
TITLE_CHARS_MAX = 500
SUMMARY_CHARS_MAX = 4_000
NAME_CHARS_MAX = 200
ID_CHARS_MAX = 1_000
CATEGORIES_MAX = 30
CHECK_SECONDS_MAX = 7 * 86_400.0
TIME_MS_MAX = 4_102_444_800_000
"""The year 2100: later dates are mistakes."""


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry, made harmless. Texts are plain, `content_html` is sanitized, addresses are canonical."""

    id: str
    """The entry's guid or id as given, else its address; a bare number is unique only within its feed."""
    url: str | None
    title: str
    summary_text: str = ""
    content_html: str = ""
    author: str | None = None
    published_ms: int | None = None
    """None where the feed gives no date that can be read; it may lie in the future."""
    updated_ms: int | None = None
    image: str | None = None
    categories: tuple[str, ...] = ()
    language: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """A feed and its entries in the order given."""

    url: str
    format: str
    """What it calls itself: rss20, atom10, json11, ..."""
    title: str
    entries: tuple[FeedEntry, ...]
    home: str | None = None
    language: str | None = None
    ttl_seconds: float | None = None
    """How long the outlet says its feed may be kept (`ttl`)."""
    update_seconds: float | None = None
    """How often the outlet says it publishes (`sy:updatePeriod`)."""
    dropped: int = 0
    """Entries with neither an address nor an id, or repeated."""
    flaw: str | None = None
    """Why the text was not well-formed, where it was not."""

    @property
    def next_check_seconds(self) -> float | None:
        """The outlet's wish for the time until the next look."""
        hints = [hint for hint in (self.ttl_seconds, self.update_seconds) if hint]
        return max(hints) if hints else None


def distinct(entries: Iterable[FeedEntry | None]) -> tuple[tuple[FeedEntry, ...], int]:
    """Keep the first entry of each id, and tell how many were dropped."""
    kept: dict[str, FeedEntry] = {}
    seen = 0
    for entry in entries:
        seen += 1
        if entry is not None:
            kept.setdefault(entry.id, entry)
    return tuple(kept.values())[:ENTRIES_MAX], seen - len(kept)


def seconds(value: Any, unit: float) -> float | None:
    """Read a positive duration given in `unit` seconds, at most a week; None where there is none."""
    number = number_of(value)
    return min(number * unit, CHECK_SECONDS_MAX) if number else None


def number_of(value: Any) -> float | None:
    """Read a positive, finite number out of whatever a feed says."""
    try:
        number = float(str(value).strip())
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None
