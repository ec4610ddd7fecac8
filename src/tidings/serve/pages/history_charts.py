"""Small charts of how a card's numbers and its rank went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from markupsafe import Markup

from tidings.model.publication import RankedList
from tidings.model.tracks import TrackPoint
from tidings.serve.pages.charts import step_chart

POINTS_MIN = 2
TICKS = 3
_DAY_MS = 86_400_000


class HistoryChart(NamedTuple):
    """One chart, with its name and what it comes to."""

    title: str
    fact: str
    chart: Markup


def charts_of(
    points: Sequence[TrackPoint], tracked: Mapping[str, str], lists: Sequence[RankedList]
) -> list[HistoryChart]:
    """Draw each number that was noted often enough, then the rank in the first list that held the card."""
    drawn = [_numbers(points, name, words) for name, words in tracked.items()]
    ranked = next((each for each in lists if any(each.name in point.ranks for point in points)), None)
    drawn.append(_ranks(points, ranked) if ranked is not None else None)
    return [each for each in drawn if each is not None]


def _numbers(points: Sequence[TrackPoint], name: str, words: str) -> HistoryChart | None:
    series = [(point.at, point.values[name]) for point in points if name in point.values]
    if len(series) < POINTS_MIN:
        return None
    first, last = series[0][1], series[-1][1]
    fact = f"{last:,}" if first == last else f"{last:,}, from {first:,}"
    return HistoryChart(words, fact, step_chart(series, _labels(series), _ticks(series), words))


def _ranks(points: Sequence[TrackPoint], ranked: RankedList) -> HistoryChart | None:
    series = [(point.at, point.ranks[ranked.name]) for point in points if ranked.name in point.ranks]
    if len(series) < POINTS_MIN:
        return None
    title = f"Rank, {ranked.title.lower()}"
    # Nothing is noted of a card that has left its lists, so the last rank need not be today's: no word says so.
    last, best = series[-1][1], min(rank for _, rank in series)
    fact = f"{last}" if last == best else f"{last}, best {best}"
    return HistoryChart(title, fact, step_chart(series, _labels(series), _ticks(series), title, is_rank=True))


def _labels(series: Sequence[tuple[int, int]]) -> list[str]:
    return [f"{_moment(at):%d %b %H:%M}" for at, _ in series]


def _ticks(series: Sequence[tuple[int, int]]) -> list[str]:
    """Name times at even distances: hours within a day, else days."""
    first, last = series[0][0], series[-1][0]
    form = "%H:%M" if last - first < _DAY_MS else "%d %b"
    return [f"{_moment(first + (last - first) * tick // (TICKS - 1)):{form}}" for tick in range(TICKS)]


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)
