"""Pages of hits, in the order that was asked: each hit on exactly one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import tantivy
from tantivy import FieldType, Occur, Query

from tidings.follow.search.deadline import Deadline
from tidings.follow.search.schema import INTEGER_MAX
from tidings.model.clock import DAY_MS

DEPTH_MAX = 10_000
CANDIDATES = 400
"""How many of the best matches are ordered by age too; behind them, words and score alone decide."""
SPARE = 20
HALF_LIFE_DAYS = 365.0


Best = list[tuple[float, tantivy.DocAddress]]
"""The best matches with their ranks, best first."""


class Ranked(NamedTuple):
    """A hit and what it is sorted by: its rank, or a value such as its time."""

    rank: float
    value: int
    item: int
    place: tantivy.DocAddress


def best_matches(searcher: tantivy.Searcher, query: Query, now_ms: int) -> tuple[Best, int]:
    """Return the best matches by words, score and age, and how many there are in all."""
    found = searcher.search(query, CANDIDATES, count=True, weight_by_field="weight")
    places = [place for _, place in found.hits]
    times = searcher.fast_field_values("time", places)
    items = searcher.fast_field_values("item", places)
    ranked = [
        (-rank * freshness_weight(int(time or 0), now_ms), -int(time or 0), -int(item or 0), n)
        for n, ((rank, _), time, item) in enumerate(zip(found.hits, times, items, strict=True))
    ]
    return [(-rank, places[n]) for rank, _, _, n in sorted(ranked)], count_of(found)


def ranked_page(searcher: tantivy.Searcher, query: Query, best: Best, start: int, limit: int) -> list[Ranked]:
    """Return the hits behind the first `start`: of the best matches, then of all others by words and score."""
    hits = best[start : start + limit]
    behind = max(start, CANDIDATES)
    wanted = min(limit - len(hits), DEPTH_MAX - behind)
    if len(best) == CANDIDATES and wanted > 0:
        hits = hits + list(searcher.search(query, wanted, count=False, offset=behind, weight_by_field="weight").hits)
    items = searcher.fast_field_values("item", [place for _, place in hits])
    return [Ranked(rank, 0, int(item or 0), place) for (rank, place), item in zip(hits, items, strict=True)]


def count_of(found: tantivy.SearchResult) -> int:
    """Return how many documents match; the types that the binding ships do not mention it."""
    return int(found.count)  # type: ignore[attr-defined]


def freshness_weight(time_ms: int, now_ms: int) -> float:
    """Let age move a hit, but never past a much better match."""
    age_days = max(0.0, (now_ms - time_ms) / DAY_MS)
    return 1 + 0.3 * float(0.5 ** (age_days / HALF_LIFE_DAYS))


@dataclass(frozen=True, slots=True)
class Sorting:
    """A query's hits from the highest value of a field down, those of one value from the newest item down."""

    searcher: tantivy.Searcher
    schema: tantivy.Schema
    query: Query
    field: str
    deadline: Deadline

    def count(self) -> int:
        """Return how many there are in all."""
        return count_of(self.searcher.search(self.query, 1, count=True))

    def page(self, behind: tuple[int, int] | None, limit: int) -> list[Ranked]:
        """Return the hits behind a value and an item.

        The engine sorts by one field alone and leaves equal values in the order of its files. A few more are read than
        wanted; only where still more are equal is the engine asked for those alone, by item.
        """
        page: list[Ranked] = []
        highest = None if behind is None else behind[0]
        while len(page) < limit:
            wanted = limit - len(page) + SPARE
            self.deadline.check()
            read = self._read(highest, wanted)
            is_all = len(read) < wanted
            whole = [hit for hit in read if is_all or hit.value > read[-1].value]
            lower = [hit for hit in whole if behind is None or (hit.value, hit.item) < behind]
            page += sorted(lower, key=lambda hit: (-hit.value, -hit.item))
            if is_all or len(page) >= limit:
                break
            last = read[-1].value
            start = behind[1] if behind is not None and behind[0] == last else INTEGER_MAX
            page += self._equal(last, start, limit - len(page))
            behind, highest = None, last - 1
        return page[:limit]

    def _read(self, high: int | None, limit: int) -> list[Ranked]:
        query = _within(self.schema, self.query, self.field, None, high)
        hits = self.searcher.search(query, limit, count=False, order_by_field=self.field).hits
        items = self.searcher.fast_field_values("item", [place for _, place in hits])
        return [
            Ranked(0.0, int(value), int(item or 0), place) for (value, place), item in zip(hits, items, strict=True)
        ]

    def _equal(self, value: int, below: int, limit: int) -> list[Ranked]:
        """Return hits of one value, of items below one."""
        query = _within(self.schema, self.query, self.field, value, value)
        query = _within(self.schema, query, "item", None, below - 1)
        hits = self.searcher.search(query, limit, count=False, order_by_field="item").hits
        return [Ranked(0.0, value, int(item), place) for item, place in hits]


def _within(schema: tantivy.Schema, query: Query, field: str, low: int | None, high: int | None) -> Query:
    if low is None and high is None:
        return query
    between = Query.range_query(schema, field, FieldType.Integer, low, high)
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, Query.const_score_query(between, 0.0))])
