"""How the numbers of a card went while it stood in ranked lists: few points, dense where they are young."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

POINTS_MAX = 120


class TrackPoint(msgspec.Struct, frozen=True, array_like=True):
    """The numbers at one time, and the rank in each list that held the card."""

    at: int
    values: Mapping[str, int]
    ranks: Mapping[str, int]


def extended(points: Sequence[TrackPoint], point: TrackPoint, *, pause_ms: int) -> list[TrackPoint] | None:
    """Add a point; None where it says the same as the one before, or comes too soon after it."""
    if points:
        last = points[-1]
        if point.at - last.at < pause_ms or (point.values, point.ranks) == (last.values, last.ranks):
            return None
    return thinned([*points, point], point.at)


def thinned(points: list[TrackPoint], now_ms: int, points_max: int = POINTS_MAX) -> list[TrackPoint]:
    """Drop points until there are few enough, each time the one that stands closest for its age; the ends stay."""
    points = list(points)
    while len(points) > max(2, points_max):
        gaps = [
            (points[n + 1].at - points[n - 1].at) / max(1, now_ms - points[n].at) for n in range(1, len(points) - 1)
        ]
        del points[gaps.index(min(gaps)) + 1]
    return points
