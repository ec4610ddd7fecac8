"""What a feed holds, whichever format it came in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

ENTRIES_MAX = 10_000
"""Of one feed; the newest are kept, and the run says how many were not."""
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
    """The guid or id as given, else its address, else a mark of its content; numbers are unique only in their feed."""
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
    """A feed and its entries, the newest first."""

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
    repeated: int = 0
    """Entries with an id that another one has."""
    empty: tuple[int, ...] = ()
    """Places of entries that have neither words nor an address nor an id."""
    left_out: str | None = None
    """What was there and was not read, because it is beyond a limit."""
    flaw: str | None = None
    """Why the text was not well-formed, where it was not."""

    @property
    def next_check_seconds(self) -> float | None:
        """The outlet's wish for the time until the next look."""
        hints = [hint for hint in (self.ttl_seconds, self.update_seconds) if hint]
        return max(hints) if hints else None


@dataclass(frozen=True, slots=True)
class Sifted:
    """Entries without repetitions, and what became of the others."""

    entries: tuple[FeedEntry, ...]
    repeated: int
    empty: tuple[int, ...]


def sift(entries: Iterable[FeedEntry | None]) -> Sifted:
    """Keep the first entry of each id, the newest ones first."""
    kept: dict[str, FeedEntry] = {}
    empty: list[int] = []
    seen = 0
    for seen, entry in enumerate(entries, start=1):
        if entry is None:
            empty.append(seen)
        else:
            kept.setdefault(entry.id, entry)
    newest = newest_first([entry.published_ms for entry in kept.values()])
    ordered = list(kept.values())
    return Sifted(tuple(ordered[place] for place in newest), seen - len(empty) - len(kept), tuple(empty))


def newest_first(times: Iterable[int | None]) -> list[int]:
    """Return the places of entries, the newest first; one without a date stays behind the one before it."""
    dated: list[tuple[int, int]] = []
    last: int | None = None
    for place, at in enumerate(times):
        last = at if at is not None else last
        dated.append((last if last is not None else TIME_MS_MAX, place))
    return [place for _, place in sorted(dated, key=lambda each: (-each[0], each[1]))]


def content_id(title: str, text: str, published_ms: int | None) -> str | None:
    """Name an entry that has neither id nor address by what it says; None where that is nothing."""
    if not title and not text:
        return None
    return (
        "content:" + blake2b(f"{title}\n{published_ms}\n{text}".encode("utf-8", "replace"), digest_size=12).hexdigest()
    )


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
