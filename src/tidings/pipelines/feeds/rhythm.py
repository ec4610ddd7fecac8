"""How soon a feed is worth another look: by its own rhythm, within bounds, and never sooner than it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import msgspec

from tidings.discover.feed import ParsedFeed, next_check_seconds

ENTRIES_LOOKED_AT = 20
LOOKS_PER_ENTRY = 2
"""A feed is looked at about twice between two entries."""
SILENCE_SHARE = 0.1
"""One that has fallen silent is looked at after a further tenth of its silence."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How often a feed may be asked. `fixed_seconds` switches adapting off."""

    usual_seconds: float = 3600.0
    shortest_seconds: float = 900.0
    longest_seconds: float = 86_400.0
    fixed_seconds: float | None = None


class Rhythm(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a feed's pace."""

    newest_ms: int | None = None
    gap_seconds: float | None = None
    """The median time between two entries."""
    asked_seconds: float | None = None
    """The outlet's own wish."""


def rhythm_of(feed: ParsedFeed, now_ms: int) -> Rhythm:
    """Read a feed's pace off its entries' dates; dates in the future count for nothing."""
    rhythm = rhythm_of_times([entry.published_ms or entry.updated_ms for entry in feed.entries], now_ms)
    return msgspec.structs.replace(rhythm, asked_seconds=feed.next_check_seconds)


def rhythm_of_times(dated: Sequence[int | None], now_ms: int) -> Rhythm:
    """Read a pace off times; those in the future count for nothing."""
    times = sorted((at for at in dated if at is not None and at <= now_ms), reverse=True)[:ENTRIES_LOOKED_AT]
    return Rhythm(newest_ms=times[0] if times else None, gap_seconds=_median_gap(times))


def next_look_seconds(rhythm: Rhythm, headers: Mapping[str, str], now_ms: int, bounds: Bounds) -> float:
    """Return the wait until the next look."""
    if bounds.fixed_seconds is not None:
        return bounds.fixed_seconds
    wait = bounds.usual_seconds
    if rhythm.gap_seconds is not None and rhythm.newest_ms is not None:
        silence_seconds = (now_ms - rhythm.newest_ms) / 1000
        wait = max(rhythm.gap_seconds / LOOKS_PER_ENTRY, silence_seconds * SILENCE_SHARE)
    wait = min(max(wait, bounds.shortest_seconds), bounds.longest_seconds)
    wish_seconds = next_check_seconds(None, headers, every_seconds=wait, at_most_seconds=bounds.longest_seconds)
    return min(max(wait, wish_seconds or 0.0, rhythm.asked_seconds or 0.0), bounds.longest_seconds)


def _median_gap(times: Sequence[int]) -> float | None:
    gaps = [(later - earlier) / 1000 for later, earlier in pairwise(times)]
    # A whole feed dated alike was dated by a machine: that says nothing.
    return median(gaps) if gaps and any(gaps) else None
