"""The stream of changes: every card that is put or withdrawn, once, in the order of commits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from tests.support.example import Thing, present, thing
from tests.support.store import Ground

from tidings.model.changes import Change, CursorGone
from tidings.model.clock import DAY_MS
from tidings.store.cards import Card, draw_versions, put_cards

OpenGround = Callable[..., Ground]


def told(ground: Ground, after: str | None = None, *, limit: int = 100) -> tuple[list[Change], str]:
    page = ground.store.changes.changes(ground.name, after, limit)
    return list(page.changes), page.position


def keys(changes: list[Change]) -> list[tuple[str, bool]]:
    return [(change.key, change.value is not None) for change in changes]


def publish(ground: Ground, *names: str, text: str = "text") -> None:
    ground.record(*(thing(name, text) for name in names))
    ground.work()


def test_each_card_has_a_version_of_its_own(ground: Ground) -> None:
    publish(ground, "a", "b", "c")

    changes, _ = told(ground)

    assert sorted(key for key, _ in keys(changes)) == ["thing:a", "thing:b", "thing:c"]
    versions = [change.version for change in changes]
    assert versions == sorted(set(versions))


def test_a_page_goes_on_where_the_last_one_ended(ground: Ground) -> None:
    publish(ground, *"abcdefg")
    seen: list[Change] = []
    position = None
    while True:
        page = ground.store.changes.changes(ground.name, position, 3)
        seen, position = [*seen, *page.changes], page.position
        if not page.is_full:
            break

    assert len(seen) == len({change.key for change in seen}) == 7
    assert told(ground, position)[0] == []


def test_a_changed_card_is_told_once_with_its_newest_value(ground: Ground) -> None:
    publish(ground, "a")
    _, position = told(ground)
    publish(ground, "a", text="two")
    publish(ground, "a", text="three")

    changes, _ = told(ground, position)

    assert len(changes) == 1
    assert b"three" in (changes[0].value or b"")


def test_what_is_withdrawn_is_told_without_a_value(ground: Ground) -> None:
    publish(ground, "a", "b")
    _, position = told(ground)
    with ground.database.transaction() as tx:
        put_cards(tx, ground.pipelines[ground.name], [Card(ground.item("a").id, 2, None)])

    changes, _ = told(ground, position)

    assert keys(changes) == [("thing:a", False)]
    assert changes[0].item == ground.item("a").id


def test_what_comes_back_stands_behind_its_withdrawal(ground: Ground) -> None:
    publish(ground, "a")
    item, pipeline = ground.item("a").id, ground.pipelines[ground.name]
    with ground.database.transaction() as tx:
        put_cards(tx, pipeline, [Card(item, 1, None)])
    with ground.database.transaction() as tx:
        put_cards(tx, pipeline, [Card(item, 1, pipeline.show(present("a", Thing("a", "again"))))])

    assert keys(told(ground)[0]) == [("thing:a", False), ("thing:a", True)]


def test_a_card_with_another_key_leaves_no_ghost(ground: Ground) -> None:
    publish(ground, "a")
    item, pipeline = ground.item("a").id, ground.pipelines[ground.name]
    _, position = told(ground)
    with ground.database.transaction() as tx:
        put_cards(tx, pipeline, [Card(item, 2, pipeline.show(present("b", Thing("a", "moved"))))])

    assert keys(told(ground, position)[0]) == [("thing:a", False), ("thing:b", True)]


def test_no_version_appears_below_one_that_was_read(ground: Ground) -> None:
    """A transaction that has drawn a version and is still open: nobody overtakes it."""
    publish(ground, "a", "b")
    item, pipeline = ground.item("a").id, ground.pipelines[ground.name]
    has_drawn, may_end = Event(), Event()

    def slow() -> int:
        with ground.database.transaction() as tx:
            version = draw_versions(tx, ground.name)
            has_drawn.set()
            assert may_end.wait(20)
        return version

    def quick() -> int:
        with ground.database.transaction() as tx:
            put_cards(tx, pipeline, [Card(item, 2, pipeline.show(present("a", Thing("a", "new"))))])
        return told(ground)[0][-1].version

    _, before = told(ground)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(slow)
        assert has_drawn.wait(20)
        second = threads.submit(quick)
        ground.wait_until_blocked(second)
        assert told(ground, before)[0] == []
        may_end.set()
        assert second.result(20) > first.result(20)


def test_a_cursor_of_another_database_is_refused(ground: Ground) -> None:
    publish(ground, "a")
    _, position = told(ground)
    stream, name, version = position.split(".")
    ours = f"{stream}.{name}"

    for cursor in (
        f"other.{name}.{version}",
        f"{stream}.another.{version}",
        f"{ours}.{int(version) + 1}",
        f"{ours}.-1",
        f"{ours}.²",
        f"{ours}.{version}.",
        f"{ours}.{version}.{int(version) + 1}",
        f"{ours}.{version}.{version}.1",
        f"{ours}.{'9' * 30}",
        "nonsense",
        "",
    ):
        with pytest.raises(CursorGone):
            told(ground, cursor)


def test_whoever_missed_a_forgotten_withdrawal_starts_over(ground: Ground) -> None:
    publish(ground, "a", "b")
    _, position = told(ground)
    ground.store.shelf.put(ground.name, "note:x", b"1")
    ground.store.shelf.delete(ground.name, "note:x")
    ground.advance(seconds=8 * DAY_MS / 1000)

    ground.store.retention.tidy()

    with pytest.raises(CursorGone):
        told(ground, position)
    assert [key for key, _ in keys(told(ground)[0])] == ["thing:a", "thing:b"]


def test_starting_over_ends_where_the_first_page_lies_before_what_is_forgotten(ground: Ground) -> None:
    """A reader that has nothing misses no withdrawal from before its beginning, however small its pages are."""
    publish(ground, *"abcdefg")
    ground.store.shelf.put(ground.name, "note:x", b"1")
    ground.store.shelf.delete(ground.name, "note:x")
    ground.advance(seconds=8 * DAY_MS / 1000)
    ground.store.retention.tidy()

    first, position = told(ground, limit=3)
    second, position = told(ground, position, limit=3)
    third, _ = told(ground, position, limit=3)

    assert [key for key, _ in keys([*first, *second, *third])] == [f"thing:{name}" for name in "abcdefg"]


def test_a_beginner_who_misses_a_withdrawal_on_the_way_starts_over(ground: Ground) -> None:
    publish(ground, *"abcdefg")
    _, position = told(ground, limit=3)
    withdrawn = Card(ground.item("a").id, 2, None)
    with ground.database.transaction() as tx:
        put_cards(tx, ground.pipelines[ground.name], [withdrawn])
    ground.advance(seconds=8 * DAY_MS / 1000)
    ground.store.retention.tidy()

    with pytest.raises(CursorGone):
        told(ground, position)


def test_after_a_rebuild_everyone_starts_over(ground: Ground) -> None:
    publish(ground, "a", "b")
    _, position = told(ground)

    ground.store.rebuilder.rebuild()

    with pytest.raises(CursorGone):
        told(ground, position)
    assert sorted(keys(told(ground)[0])) == [("thing:a", True), ("thing:b", True)]


def test_threads_are_known_from_below(open_ground: OpenGround) -> None:
    ground = open_ground()
    ground.write(
        "INSERT INTO links (pipeline, relation, child, said_by, parent) VALUES "
        "('example', 'reply', 'thing:c', 1, 'thing:b'), ('example', 'reply', 'thing:b', 1, 'thing:a')"
    )

    above = ground.store.changes.ancestors("example", "reply", ["thing:c", "thing:a"])

    assert {ref: sorted(names) for ref, names in above.items()} == {"thing:c": ["thing:a", "thing:b"], "thing:a": []}
