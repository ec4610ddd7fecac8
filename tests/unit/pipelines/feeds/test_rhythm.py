"""A feed is asked by its own rhythm, within bounds."""

from __future__ import annotations

import pytest

from tidings.discover.feed import FeedEntry, ParsedFeed
from tidings.pipelines.feeds.rhythm import Bounds, Rhythm, next_look_seconds, rhythm_of

NOW_MS = 1_800_000_000_000
HOUR = 3600
BOUNDS = Bounds(usual_seconds=HOUR, shortest_seconds=900, longest_seconds=24 * HOUR)


def a_feed(*hours_ago, **more):
    entries = tuple(
        FeedEntry(id=str(n), url=None, title="x", published_ms=None if h is None else round(NOW_MS - h * HOUR * 1000))
        for n, h in enumerate(hours_ago)
    )
    return ParsedFeed(url="https://a.example/feed", format="rss20", title="A", entries=entries, **more)


def wait(feed, headers=None, bounds=BOUNDS):
    return next_look_seconds(rhythm_of(feed, NOW_MS), headers or {}, NOW_MS, bounds)


@pytest.mark.parametrize(
    ("hours_ago", "hours"),
    [
        ((), 1),
        ((None, None), 1),
        ((1,), 1),
        ((0, 0.2, 0.4), 0.25),
        ((1, 5, 9, 13), 2),
        ((2, 26, 50), 12),
        ((1, 200, 400), 24),
        ((50, 51, 52), 5),
        ((1000, 1001, 1002), 24),
        ((-5, 1, 5, 9), 2),
        ((3, 3, 3, 3), 1),
    ],
)
def test_the_wait_follows_the_entries_dates(hours_ago, hours):
    assert wait(a_feed(*hours_ago)) == pytest.approx(hours * HOUR)


def test_the_outlets_wish_is_honored_within_bounds():
    quick = (0, 0.5, 1)

    assert wait(a_feed(*quick, ttl_seconds=2 * HOUR)) == 2 * HOUR
    assert wait(a_feed(*quick, update_seconds=7 * 24 * HOUR)) == 24 * HOUR
    assert wait(a_feed(*quick), {"cache-control": "public, max-age=7200"}) == 2 * HOUR
    assert wait(a_feed(1, 5, 9), {"cache-control": "max-age=60"}) == 2 * HOUR


def test_a_fixed_interval_is_fixed():
    assert wait(a_feed(0, 0.1, ttl_seconds=HOUR), bounds=Bounds(fixed_seconds=300)) == 300


def test_nothing_known_means_the_usual():
    assert next_look_seconds(Rhythm(), {}, NOW_MS, BOUNDS) == HOUR
