"""The history of a card: few points, dense where they are young."""

from __future__ import annotations

from itertools import pairwise

from tidings.model.tracks import POINTS_MAX, TrackPoint, extended, thinned

MINUTE = 60_000


def at(minute: int, score: int, rank: int = 1) -> TrackPoint:
    return TrackPoint(minute * MINUTE, {"score": score}, {"top": rank})


def test_a_point_that_says_nothing_new_or_comes_too_soon_is_left_out():
    points = extended([], at(0, 5), pause_ms=5 * MINUTE)
    assert points == [at(0, 5)]
    assert extended(points, at(60, 5), pause_ms=5 * MINUTE) is None
    assert extended(points, at(4, 6), pause_ms=5 * MINUTE) is None
    assert extended(points, at(5, 6), pause_ms=5 * MINUTE) == [at(0, 5), at(5, 6)]
    assert extended(points, at(5, 5, rank=2), pause_ms=5 * MINUTE) == [at(0, 5), at(5, 5, rank=2)]


def test_a_month_of_points_stays_few_and_dense_at_its_young_end():
    points: list[TrackPoint] = []
    for minute in range(0, 30 * 24 * 60, 5):
        points = extended(points, at(minute, minute), pause_ms=5 * MINUTE) or points

    assert len(points) == POINTS_MAX
    assert points[0] == at(0, 0)
    assert points[-1].at == (30 * 24 * 60 - 5) * MINUTE
    gaps = [later.at - earlier.at for earlier, later in pairwise(points)]
    assert max(gaps[-10:]) <= 15 * MINUTE
    assert sum(gaps[:20]) > 20 * sum(gaps[-20:])
    assert max(gaps) < 5 * 24 * 60 * MINUTE


def test_thinning_keeps_both_ends():
    assert thinned([at(n, n) for n in range(10)], 10 * MINUTE, points_max=2) == [at(0, 0), at(9, 9)]
