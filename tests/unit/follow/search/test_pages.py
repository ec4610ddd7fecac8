"""Paging: each hit on exactly one page, whatever others write meanwhile."""

from __future__ import annotations

from itertools import count

import pytest
from tests.support.search import PIPELINE, START_MS, all_pages, an_entry, an_index, keys

from tidings.follow.search.cursors import PIN_SECONDS, PINS_MAX
from tidings.follow.search.index import SearchIndex
from tidings.follow.search.pages import CANDIDATES
from tidings.model.contracts import SearchOrder
from tidings.model.errors import BadInput, SearchTooSlow
from tidings.model.query_tree import AllOf, Compare, Words

ORDERS: tuple[SearchOrder, ...] = ("relevance", "newest", "score")


def _many(number: int) -> SearchIndex:
    """Many hits with equal ranks, times and scores, in several segments."""
    index = SearchIndex(clock=lambda: START_MS)
    entries = [
        an_entry(n, "Rust", score=None if n % 3 else n % 2, time_ms=START_MS - n // 40 * 1000) for n in range(number)
    ]
    for start in range(0, number, number // 3 + 1):
        index.apply(PIPELINE, entries[start : start + number // 3 + 1], [], str(start))
    return index


@pytest.mark.parametrize("order", ORDERS)
def test_each_hit_is_on_exactly_one_page(order: SearchOrder) -> None:
    count = CANDIDATES + 300
    index = _many(count)

    shown = all_pages(index, Words("rust"), 37, order=order)

    assert sorted(shown, key=int) == [str(n) for n in range(count)]


@pytest.mark.parametrize("order", ORDERS)
def test_pages_go_on_with_what_was_there_while_others_write(order: SearchOrder) -> None:
    index = _many(120)
    found = index.search(Words("rust"), limit=25, order=order)
    shown = [hit.key for hit in found.hits]
    while found.next_cursor is not None:
        moved = [an_entry(int(key), "Rust Rust", score=99, time_ms=START_MS + 5000) for key in shown[-5:]]
        new = [an_entry(1000 + len(shown) + n, "Rust", score=50, time_ms=START_MS - 1000) for n in range(3)]
        index.apply(PIPELINE, [*moved, *new], [(int(shown[-1]) + 1) % 120], "2")
        found = index.search(Words("rust"), limit=25, order=order, cursor=found.next_cursor)
        shown += [hit.key for hit in found.hits]

    assert sorted(shown, key=int) == [str(n) for n in range(120)]
    assert found.total == 120


@pytest.mark.parametrize("order", ["newest", "score"])
def test_a_sorted_list_goes_on_after_its_state_was_let_go(order: SearchOrder) -> None:
    now = 0.0
    index = SearchIndex(clock=lambda: START_MS, monotonic=lambda: now)
    index.apply(PIPELINE, [an_entry(n, "Rust", score=n % 4) for n in range(100)], [], "1")
    whole = keys(index, Words("rust"), limit=100, order=order)
    found = index.search(Words("rust"), limit=30, order=order)
    shown = [hit.key for hit in found.hits]
    while found.next_cursor is not None:
        now += PIN_SECONDS + 1
        index.apply(PIPELINE, [an_entry(500 + len(shown), "Rust", score=99)], [], "2")
        found = index.search(Words("rust"), limit=30, order=order, cursor=found.next_cursor)
        shown += [hit.key for hit in found.hits]

    assert shown == whole


def test_many_who_leaf_at_once_each_see_every_hit() -> None:
    index = _many(60)
    cursors = [index.search(Words("rust"), limit=50).next_cursor for _ in range(PINS_MAX + 20)]

    rest = [keys(index, Words("rust"), limit=50, cursor=cursor) for cursor in cursors]

    assert {tuple(keys_) for keys_ in rest} == {tuple(rest[-1])}
    assert len(rest[-1]) == 10


def test_without_words_the_newest_come_first() -> None:
    index = an_index(*(an_entry(n, "Rust") for n in range(5)))

    assert keys(index, AllOf()) == keys(index, Compare("pipeline", "=", PIPELINE)) == ["4", "3", "2", "1", "0"]


def test_the_highest_score_comes_first_and_none_comes_last() -> None:
    index = an_index(*(an_entry(n, "Rust", score=score) for n, score in enumerate([3, None, -1, 40, 0])))

    assert keys(index, Words("rust"), order="score") == ["3", "0", "4", "2", "1"]


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "gqFh"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(BadInput, match="cursor"):
        _many(10).search(Words("rust"), cursor=cursor)


def test_a_cursor_of_another_query_is_refused() -> None:
    index = _many(10)
    cursor = index.search(Words("rust"), limit=2).next_cursor

    with pytest.raises(BadInput, match="another query"):
        index.search(Words("zig"), cursor=cursor)
    with pytest.raises(BadInput, match="1 to"):
        index.search(Words("rust"), limit=0)


def test_a_second_attempt_goes_on_on_its_later_pages() -> None:
    index = an_index(*(an_entry(n, "A compiler", f"number {n}") for n in range(10)))

    first = index.search(Words("compilr"), limit=4)
    shown = all_pages(index, Words("compilr"), 4)

    assert (first.instead, first.total) == ("compiler", 10)
    assert sorted(shown, key=int) == [str(n) for n in range(10)]


def test_a_query_that_has_had_its_time_is_given_up() -> None:
    seconds = count()
    slow = SearchIndex(clock=lambda: START_MS, monotonic=lambda: float(next(seconds)), query_seconds=20)
    slow.apply("hacker_news", [an_entry(n, "Rust") for n in range(100)], [], "1")

    assert len(slow.search(Words("rust"), limit=5).hits) == 5
    with pytest.raises(SearchTooSlow, match="more than 20 s"):
        slow.search(Words("rust"), limit=100)
    assert len(slow.search(Words("rust"), limit=5).hits) == 5
