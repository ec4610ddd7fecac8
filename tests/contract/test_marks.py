"""Marks of readers: what was read and starred, one by one and up to a line, apart for each reader."""

from __future__ import annotations

import pytest
from tests.support.example import thing
from tests.support.store import Ground

from tidings.model.clock import DAY_MS
from tidings.model.marks import DEFAULT_READER, SavedSearch, is_read


@pytest.fixture
def items(ground: Ground) -> list[int]:
    """Five items that are shown."""
    ground.record(*(thing(f"t{number}") for number in range(5)))
    while leases := ground.claim(100):
        ground.settle(*leases)
    found = [int(str(row[0])) for row in ground.sql("SELECT id FROM shelf WHERE id > 0 ORDER BY id")]
    assert len(found) == 5
    return found


def read_items(ground: Ground, items: list[int], reader: str = DEFAULT_READER) -> list[int]:
    marks, line = ground.store.marks.of(reader, items), ground.store.marks.lines(reader).get("example", 0)
    return [item for item in items if is_read(item, marks.get(item), line)]


def test_a_mark_is_set_and_taken_back(ground: Ground, items: list[int]) -> None:
    marks = ground.store.marks
    assert marks.mark(DEFAULT_READER, items[:2], read=True) == 2
    assert marks.mark(DEFAULT_READER, items[1:2], starred=True) == 1
    assert read_items(ground, items) == items[:2]
    assert marks.starred(DEFAULT_READER, 10) == items[1:2]

    marks.mark(DEFAULT_READER, items, read=False)
    marks.mark(DEFAULT_READER, items, starred=False)
    assert read_items(ground, items) == []
    assert marks.starred(DEFAULT_READER, 10) == []


def test_readers_do_not_see_each_others_marks(ground: Ground, items: list[int]) -> None:
    ground.store.marks.mark("ann", items, read=True, starred=True)
    ground.store.marks.read_up_to("bob", ["example"], ground.now_ms() + DAY_MS)
    assert read_items(ground, items) == []
    assert read_items(ground, items, "ann") == read_items(ground, items, "bob") == items
    assert ground.store.marks.starred("bob", 10) == []


def test_everything_up_to_now_is_read_and_what_comes_later_is_not(ground: Ground, items: list[int]) -> None:
    marks = ground.store.marks
    marks.mark(DEFAULT_READER, items[:2], read=False)
    marks.mark(DEFAULT_READER, items[:1], starred=True)
    marks.read_up_to(DEFAULT_READER, ["example"], ground.now_ms() + DAY_MS)
    assert read_items(ground, items) == items
    assert marks.starred(DEFAULT_READER, 10) == items[:1]

    ground.record(thing("later"))
    ground.settle(*ground.claim(100))
    newest = int(str(ground.sql("SELECT max(id) FROM shelf")[0][0]))
    assert read_items(ground, [newest]) == []
    marks.read_up_to(DEFAULT_READER, ["example"], 1)
    assert read_items(ground, items) == items, "a line never moves back"


def test_an_item_can_be_kept_unread_below_the_line(ground: Ground, items: list[int]) -> None:
    ground.store.marks.read_up_to(DEFAULT_READER, ["example"], ground.now_ms() + DAY_MS)
    ground.store.marks.mark(DEFAULT_READER, items[2:3], read=False)
    assert read_items(ground, items) == [*items[:2], *items[3:]]


def test_what_is_not_shown_gets_no_mark(ground: Ground, items: list[int]) -> None:
    assert ground.store.marks.mark(DEFAULT_READER, [10**9, -5], read=True) == 0
    assert ground.store.marks.of(DEFAULT_READER, [10**9]) == {}
    place = ground.store.marks.places([items[0], 10**9])
    assert [(each.item, each.pipeline) for each in place.values()] == [(items[0], "example")]


def test_marks_of_removed_items_are_tidied_away(ground: Ground, items: list[int]) -> None:
    ground.store.marks.mark(DEFAULT_READER, items, read=True)
    ground.write("DELETE FROM items WHERE id = :id", id=items[0])
    assert ground.store.retention.tidy()["marks"] == 1
    assert sorted(ground.store.marks.of(DEFAULT_READER, items)) == items[1:]


def test_searches_are_kept_by_name(ground: Ground) -> None:
    marks = ground.store.marks
    assert marks.put_search("ann", SavedSearch(name="fees", title="Fees", query="fees -etf"))
    assert marks.put_search("ann", SavedSearch(name="fees", title="Fees", query="fees", pipeline="example"))
    assert [(each.query, each.pipeline) for each in marks.searches("ann")] == [("fees", "example")]
    assert marks.searches("bob") == []
    assert marks.delete_search("ann", "fees")
    assert not marks.delete_search("ann", "fees")


def test_a_token_may_name_a_reader(ground: Ground) -> None:
    tokens = ground.store.tokens
    named, plain = tokens.create("phone", "reader", "ann"), tokens.create("other", "read")
    assert (tokens.reader_of(named), tokens.reader_of(plain)) == ("ann", None)
    tokens.revoke("phone")
    assert tokens.reader_of(named) is None
