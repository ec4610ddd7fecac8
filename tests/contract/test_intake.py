"""The intake log: what is accepted is merged once, in order, whatever happens in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from tests.support import example
from tests.support.example import thing
from tests.support.store import Ground, altered

from tidings.model.clock import DAY_MS
from tidings.model.errors import BadInput
from tidings.model.item import Appended, Finding
from tidings.model.publication import Presentation, Retention
from tidings.store.db.postgres_tx import columns_of, compiled

OpenGround = Callable[..., Ground]


def test_append_tells_new_changed_and_unchanged_apart(ground: Ground) -> None:
    assert ground.store.intake.append("example", [thing("a"), thing("b")]) == Appended(2, 0, 0)
    ground.merge()

    again = ground.store.intake.append("example", [thing("a"), thing("b", "other"), thing("c")])

    assert again == Appended(new=1, changed=1, unchanged=1)
    assert ground.store.intake.unmerged("example") == 2


def test_what_waits_in_the_log_is_known_before_it_is_merged(ground: Ground) -> None:
    ground.store.intake.append("example", [thing("a", "one")])

    assert ground.store.intake.append("example", [thing("a", "one")]) == Appended(0, 0, 1)
    assert ground.store.intake.append("example", [thing("a", "two")]) == Appended(0, 1, 0)
    assert ground.store.intake.append("example", [thing("a", "two")]) == Appended(0, 0, 1)
    assert ground.store.intake.append("example", [thing("a", "one")]) == Appended(0, 1, 0)


def test_duplicates_inside_a_page_count_once(ground: Ground) -> None:
    page = [thing("a"), thing("a"), thing("a", "changed"), thing("a", "changed"), thing("b")]

    assert ground.store.intake.append("example", page) == Appended(new=2, changed=1, unchanged=2)

    merged = ground.merge()
    assert (merged.read, merged.born, merged.changed) == (3, 2, 1)
    assert ground.item("a").revision == 2


def test_rereading_a_page_appends_nothing(ground: Ground) -> None:
    page = [thing(str(n)) for n in range(20)]
    ground.store.intake.append("example", page, source="example.things", cursor=1)
    before = ground.dump(["intake"])

    assert ground.store.intake.append("example", page, source="example.things", cursor=1).accepted == 0
    assert ground.dump(["intake"]) == before


def test_an_empty_fingerprint_is_a_fingerprint_like_any_other(ground: Ground) -> None:
    bare = altered(thing("a"), fingerprint="")
    ground.record(bare)

    assert ground.store.intake.append("example", [bare]) == Appended(0, 0, 1)
    assert ground.store.intake.append("example", [thing("a", "changed")]) == Appended(0, 1, 0)


@pytest.mark.parametrize("wrong", [altered(thing("a"), key=""), altered(thing("a"), pipeline="another")])
def test_a_page_with_a_wrong_finding_is_refused_whole(ground: Ground, wrong: Finding) -> None:
    before = ground.dump()

    with pytest.raises(BadInput):
        ground.store.intake.append("example", [thing("fine"), wrong], source="example.things", cursor=7)

    assert ground.dump() == before


def test_cursor_and_page_commit_together_and_the_mark_only_with_the_completed_run(ground: Ground) -> None:
    intake = ground.store.intake
    assert intake.cursor("example.things") == (None, None, False)

    intake.append("example", [thing("a")], source="example.things", cursor={"page": 1})
    assert intake.cursor("example.things") == ({"page": 1}, None, False)

    intake.append("example", [thing("b")], source="example.things", cursor={"page": 2}, mark="m", completes=True)
    assert intake.cursor("example.things") == ({"page": 2}, "m", True)

    intake.append("example", [thing("c")], source="example.things", cursor=None, mark=None, completes=True)
    assert intake.cursor("example.things") == ({"page": 2}, "m", True)


def test_a_page_that_cannot_be_written_moves_no_cursor(ground: Ground) -> None:
    unstorable = altered(thing("a"), priority=None)  # the column forbids it

    with pytest.raises(Exception, match=r"(?i)null"):
        ground.store.intake.append("example", [thing("b"), unstorable], source="example.things", cursor=5)

    assert ground.store.intake.cursor("example.things") == (None, None, False)
    assert ground.store.intake.unmerged("example") == 0


def test_concurrent_appends_of_one_key_make_one_item_and_one_caller_hears_new(open_ground: OpenGround) -> None:
    processes = [open_ground() for _ in range(4)]
    ready = threading.Barrier(8)

    def append(number: int) -> Appended:
        ready.wait()
        page = [thing("same", f"text {number}")] if number % 2 else [thing("same", "text"), thing(f"own {number}")]
        return processes[number % 4].store.intake.append("example", page)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(append, range(8)))
    processes[0].merge()

    assert sum(a.new for a in answers) == 1 + 4
    assert len(processes[0].sql("SELECT 1 FROM items WHERE key = 'same'")) == 1
    assert len(processes[0].sql("SELECT 1 FROM items")) == 5


def test_findings_are_merged_in_log_order_and_the_checkpoint_moves_with_them(ground: Ground) -> None:
    ground.store.intake.append("example", [thing(str(n)) for n in range(7)])

    first = ground.store.intake.merge("example", limit=3)
    second = ground.store.intake.merge("example", limit=3)

    assert [row[0] for row in ground.sql("SELECT key FROM items ORDER BY id")] == ["0", "1", "2", "3", "4", "5"]
    assert (first.read, second.read) == (3, 3)
    assert first.checkpoint < second.checkpoint
    assert ground.store.intake.unmerged("example") == 1


def test_mergers_in_two_processes_merge_everything_once(open_ground: OpenGround) -> None:
    one, two = open_ground(), open_ground()
    one.store.intake.append("example", [thing(str(n)) for n in range(300)])

    with ThreadPoolExecutor(2) as pool:
        born = list(pool.map(lambda g: g.merge().born, [one, two]))

    assert sum(born) == 300
    assert one.sql("SELECT count(*), count(DISTINCT item) FROM journal") == [(300, 300)]


def test_a_merger_waits_for_the_one_that_is_merging(open_ground: OpenGround) -> None:
    """Without the lock both would read the same findings, and the one behind would move the checkpoint back."""
    one, two, looking = open_ground(), open_ground(), open_ground()
    one.store.intake.append("example", [thing(str(n)) for n in range(5)])

    with ThreadPoolExecutor(1) as pool:
        with one.database.transaction():
            first = one.store.intake.merge("example", limit=3)
            merging = pool.submit(two.store.intake.merge, "example", 1)
            looking.wait_until_blocked(merging)
        second = merging.result()

    assert (first.read, second.read) == (3, 1)
    assert second.checkpoint > first.checkpoint
    assert looking.store.intake.unmerged("example") == 1


def test_no_worker_reserves_what_an_open_merge_has_read(open_ground: OpenGround) -> None:
    one, two, looking = open_ground(), open_ground(), open_ground()
    one.store.intake.append("example", [thing(str(n)) for n in range(5)])

    with ThreadPoolExecutor(1) as pool:
        with one.database.transaction():
            one.store.intake.merge("example", limit=3)
            taking = pool.submit(two.store.intake.claim_findings, "example", 5)
            looking.wait_until_blocked(taking)
        _, taken = taking.result()

    assert taken is not None
    assert [lease.key for lease in taken.leases()] == ["3", "4"]


def test_a_merge_that_crashes_moves_neither_items_nor_checkpoint(ground: Ground) -> None:
    def merge_and_crash() -> None:
        with ground.database.transaction():
            assert ground.store.intake.merge("example").born == 2
            raise RuntimeError("crash")

    ground.store.intake.append("example", [thing("a"), thing("b")])
    before = ground.dump()

    with pytest.raises(RuntimeError, match="crash"):
        merge_and_crash()

    assert ground.dump() == before
    assert ground.merge().born == 2


def test_a_merge_that_fails_moves_no_checkpoint(ground: Ground) -> None:
    ground.store.intake.append("example", [thing("a"), thing("b")])
    ground.write("ALTER TABLE bodies RENAME TO elsewhere")

    with pytest.raises(Exception, match="bodies"):
        ground.merge()

    ground.write("ALTER TABLE elsewhere RENAME TO bodies")
    assert ground.store.intake.unmerged("example") == 2
    assert ground.merge().born == 2


def test_a_finding_that_cannot_be_shown_does_not_stop_the_merge(open_ground: OpenGround) -> None:
    def first(key: str, body: example.Thing) -> Presentation:
        if body.text == "odd":
            raise ValueError("no card for you")
        return example.present(key, body)

    ground = open_ground(example.pipeline(first_cards={"thing": first}))
    unreadable = altered(thing("unreadable"), payload=b'{"id":17}')

    merged = ground.record(thing("a"), thing("b", "odd"), unreadable, thing("a", "changed"), thing("c"))

    assert (merged.born, merged.changed) == (4, 1)
    assert ground.card("a") == b'{"id":"a","text":"changed"}'
    assert ground.card("b") is None
    assert ground.card("c") is not None


def test_trimming_never_passes_the_checkpoint(ground: Ground) -> None:
    ground.store.intake.append("example", [thing(str(n)) for n in range(10)])
    ground.store.intake.merge("example", limit=4)
    ground.advance(seconds=30 * DAY_MS / 1000)

    assert ground.store.intake.trim("example") == 4
    assert ground.store.intake.unmerged("example") == 6
    assert ground.merge().born == 6
    assert len(ground.sql("SELECT 1 FROM items")) == 10


def test_a_clock_set_back_leaves_no_hole_in_the_log(ground: Ground) -> None:
    """A finding that came later by the log and earlier by the clock stays until those before it go."""
    ground.record(thing("a"))
    ground.advance(seconds=-8 * DAY_MS / 1000)
    ground.record(thing("b"))
    ground.advance(seconds=8 * DAY_MS / 1000)

    assert ground.store.intake.trim("example") == 0
    assert ground.merge().read == 0, "the checkpoint was taken for a foreign one"

    ground.advance(seconds=8 * DAY_MS / 1000)
    assert ground.store.intake.trim("example") == 2


def test_the_log_is_kept_for_its_time(ground: Ground) -> None:
    ground.record(thing("a"))
    ground.advance(seconds=6.9 * DAY_MS / 1000)
    assert ground.store.intake.trim("example") == 0

    ground.advance(seconds=0.2 * DAY_MS / 1000)
    assert ground.store.intake.trim("example") == 1


def test_pipelines_do_not_touch_each_others_log(open_ground: OpenGround) -> None:
    other = replace(example.pipeline(), name="other")
    ground = open_ground(example.pipeline(), other)
    ground.store.intake.append("example", [thing("a")])
    ground.store.intake.append("other", [altered(thing("a"), pipeline="other")])
    ground.advance(seconds=30 * DAY_MS / 1000)

    ground.store.intake.merge("example")
    ground.store.intake.trim("example")

    assert ground.store.intake.unmerged("other") == 1
    assert ground.store.intake.merge("other").born == 1


def settled_ground(ground: Ground) -> None:
    """Three things merged and finished, then one changed and one new, still to be merged."""
    ground.record(thing("a"), thing("b"), thing("c"))
    ground.work()
    ground.store.intake.append("example", [thing("a", "changed"), thing("d")])


def expect_nothing_twice(ground: Ground) -> None:
    merged = ground.merge()
    assert (merged.born, merged.changed) == (1, 1)
    assert ground.item("a").revision == 2
    assert ground.item("b").state == "shown"
    assert ground.sql("SELECT key, count(*) FROM items GROUP BY key ORDER BY key") == [
        ("a", 1), ("b", 1), ("c", 1), ("d", 1)
    ]  # fmt: skip
    assert [row.kind for row in ground.life("b")] == ["born", "attempt"]


def test_a_lost_checkpoint_skips_nothing_and_merges_nothing_twice(ground: Ground) -> None:
    settled_ground(ground)
    ground.write("DELETE FROM checkpoints")
    expect_nothing_twice(ground)


@pytest.mark.parametrize("foreign", [-5, 0, 1, 999_999])
def test_a_foreign_checkpoint_skips_nothing_and_merges_nothing_twice(ground: Ground, foreign: int) -> None:
    settled_ground(ground)
    ground.write("UPDATE checkpoints SET checkpoint = :foreign", foreign=foreign)
    expect_nothing_twice(ground)


def test_a_checkpoint_whose_finding_is_not_in_the_log_is_foreign(ground: Ground) -> None:
    """Ids are shared by all pipelines: a number between ours may belong to somebody else, or to nobody."""
    settled_ground(ground)
    (highest,) = ground.sql("SELECT max(id) FROM intake")[0]
    ground.write("UPDATE intake SET pipeline = 'gone' WHERE id = :id", id=highest)
    ground.write("UPDATE checkpoints SET checkpoint = :id", id=highest)

    assert ground.store.intake.unmerged("example") >= 1
    ground.merge()

    assert ground.item("a").revision == 2


def test_a_foreign_checkpoint_trims_nothing(ground: Ground) -> None:
    settled_ground(ground)
    ground.write("UPDATE checkpoints SET checkpoint = 999999")
    ground.advance(seconds=30 * DAY_MS / 1000)

    assert ground.store.intake.trim("example") == 0


def test_a_trimmed_checkpoint_is_still_ours(ground: Ground) -> None:
    ground.record(thing("a"), thing("b"))
    ground.advance(seconds=30 * DAY_MS / 1000)
    assert ground.store.intake.trim("example") == 2

    ground.store.intake.append("example", [thing("c")])

    assert ground.store.intake.unmerged("example") == 1
    assert ground.merge().born == 1


def test_a_rewound_log_is_merged_without_effect(ground: Ground) -> None:
    settled_ground(ground)
    ground.merge()
    ground.work()
    before = ground.dump(["items", "bodies", "journal", "shelf"])

    ground.store.intake.rewind("example")
    ground.merge()

    after = ground.dump(["items", "bodies", "journal", "shelf"])
    assert after == before


def test_a_tombstone_keeps_the_same_finding_from_being_born_again(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(retention=(Retention("thing", days=1, forget_days=10),)))
    ground.record(thing("a"))
    ground.work()
    ground.advance(seconds=2 * DAY_MS / 1000)
    assert ground.store.retention.tidy()["retired:example"] == 1

    assert ground.store.intake.append("example", [thing("a"), thing("a")]) == Appended(0, 0, 2)
    assert not ground.has("a")

    ground.advance(seconds=11 * DAY_MS / 1000)
    ground.store.retention.tidy()
    assert ground.store.intake.append("example", [thing("a")]) == Appended(1, 0, 0)


def test_a_held_open_append_with_a_lower_id_is_still_merged(open_ground: OpenGround) -> None:
    """The first appender draws its id, then dawdles; the second must not commit a higher one before it."""
    slow, quick = open_ground(), open_ground()
    drawn, may_commit, appended = threading.Event(), threading.Event(), threading.Event()

    def append_slowly() -> None:
        with slow.database.transaction():
            slow.store.intake.append("example", [thing("slow")])
            drawn.set()
            assert may_commit.wait(10)

    def append_quickly() -> None:
        assert drawn.wait(10)
        quick.store.intake.append("example", [thing("quick")])
        appended.set()

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(append_slowly), pool.submit(append_quickly)]
        assert drawn.wait(10)
        # While the first is open the second waits: nothing may be merged past the open id.
        assert not appended.wait(0.3)
        if quick.database.dialect == "postgres":
            assert quick.merge().read == 0
        may_commit.set()
        for future in both:
            future.result()

    quick.merge()
    assert {row[0] for row in quick.sql("SELECT key FROM items")} == {"slow", "quick"}
    assert [row[0] for row in quick.sql("SELECT key FROM intake ORDER BY id")] == ["slow", "quick"]


def test_the_next_findings_are_read_without_reading_the_whole_log(ground: Ground) -> None:
    """Before the first ANALYZE PostgreSQL would collect all that waits, and sort it, for every batch."""
    if ground.database.dialect != "postgres":
        return
    ground.store.intake.append("example", [thing(f"{number}") for number in range(3_000)])

    asked = {"pipeline": "example", "after": 0, "limit": 10}
    for name in ("next_findings", "size_of_findings"):
        plan = explained(ground, name, asked)
        assert "Index Scan using intake_" in plan
        assert "Sort" not in plan


def test_keys_are_looked_up_one_by_one_however_many_items_there_are(ground: Ground) -> None:
    """The planner would rather read all items than look a thousand of them up."""
    if ground.database.dialect != "postgres":
        return
    ground.record(*(thing(f"{number}") for number in range(3_000)))
    names = [(number, "example", "thing", f"{number}") for number in range(1_000)]

    for name in ("known_fingerprints", "look_up_items", "look_up_tombstones", "waiting_findings"):
        plan = explained(ground, name, columns_of(name, names) | {"checkpoint": 0})
        assert "Index Scan using " in plan or "Index Only Scan using " in plan
        assert "Nested Loop" in plan


def explained(ground: Ground, name: str, values: Any) -> str:
    with ground.database.transaction() as tx:
        text = f"EXPLAIN {compiled(name)}"
        rows = tx.connection.execute(text, values)  # type: ignore[attr-defined]  # the driver's own
        return "\n".join(row[0] for row in rows)


def test_an_append_rolled_back_after_drawing_ids_leaves_a_hole_nobody_trips_over(ground: Ground) -> None:
    def append_and_crash() -> None:
        with ground.database.transaction():
            ground.store.intake.append("example", [thing("lost"), thing("too")], source="example.things", cursor=3)
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        append_and_crash()

    assert ground.record(thing("a")).born == 1
    assert not ground.has("lost")
    assert ground.store.intake.cursor("example.things")[0] is None


def test_an_unknown_kind_is_parked_never_dropped(ground: Ground) -> None:
    ground.record(altered(thing("a"), kind="novelty"))

    item = ground.item("a", "novelty")
    assert (item.standing, item.due_at) == ("parked", None)
