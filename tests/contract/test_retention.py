"""Retention: what has had its time goes, at rest only, and leaves a tombstone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from tests.support import example
from tests.support.example import Thing, ThingCard, thing
from tests.support.statements import plan_of
from tests.support.store import Ground

from tidings.model.clock import DAY_MS
from tidings.model.item import Finding, fingerprint
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.publication import IdIndex, Presentation, Retention
from tidings.model.workflow import ANY, Transition, Work, Workflow

OpenGround = Callable[..., Ground]


def days(ground: Ground, number: float) -> None:
    ground.advance(seconds=number * DAY_MS / 1000)


def keeping(**rule: Any) -> Pipeline:
    return example.pipeline(retention=(Retention("thing", **rule),))


def test_old_items_at_rest_go_and_leave_a_tombstone(open_ground: OpenGround) -> None:
    ground = open_ground(keeping(days=10, forget_days=5))
    ground.record(thing("old", parent="p"))
    ground.work()
    days(ground, 8)
    ground.record(thing("young"))
    ground.work()
    days(ground, 3)

    assert ground.store.retention.tidy() == {"retired:example": 1}

    assert not ground.has("old")
    assert ground.has("young")
    assert ground.card("old") is None
    for table in ("bodies", "journal", "links"):
        column = "child" if table == "links" else "item"
        known = "SELECT 'thing:' || key FROM items" if table == "links" else "SELECT id FROM items"
        left = " AND kind <> 'retired'" if table == "journal" else ""
        assert ground.sql(f"SELECT 1 FROM {table} WHERE {column} NOT IN ({known}){left}") == []
    assert ground.sql("SELECT key FROM withdrawals") == [("thing:old",)]
    (tombstone,) = ground.sql("SELECT pipeline, kind, key, fingerprint, forget_at - buried_at FROM tombstones")
    assert tombstone == ("example", "thing", "old", thing("old", parent="p").fingerprint, 5 * DAY_MS)


def test_no_key_is_item_and_tombstone_at_once(open_ground: OpenGround) -> None:
    ground = open_ground(keeping(days=1, forget_days=5))
    ground.record(thing("a"))
    ground.work()
    days(ground, 2)
    ground.store.retention.tidy()
    days(ground, 6)
    ground.store.retention.tidy()
    ground.record(thing("a"))

    assert ground.has("a")
    assert ground.sql("SELECT count(*) FROM tombstones") == [(0,)]


def test_only_the_newest_are_kept(open_ground: OpenGround) -> None:
    ground = open_ground(keeping(newest=3))
    ground.record(*(thing(str(n)) for n in range(8)))
    ground.work()

    assert ground.store.retention.tidy() == {"retired:example": 5}
    assert sorted(row[0] for row in ground.sql("SELECT key FROM items")) == ["5", "6", "7"]
    assert ground.store.retention.tidy() == {}


def test_a_refused_copy_does_not_take_the_published_one_with_it(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(), dead_letter_days=1)
    ground.record(thing("a", "good"), thing("b", fate="die"))
    ground.work()
    ground.record(thing("a", "bad", fate="die"))
    ground.work()
    days(ground, 2)

    assert ground.store.retention.tidy()["dead letters"] == 1
    assert ground.store.retention.purge() == 0

    assert (ground.has("a"), ground.has("b")) == (True, False)
    assert ground.card("a") == b'{"id":"a","text":"good"}'
    assert ground.store.retention.purge(item=ground.item("a").id) == 1
    assert ground.card("a") is None


def test_what_is_not_at_rest_stays(open_ground: OpenGround) -> None:
    ground = open_ground(keeping(days=1, newest=0))
    fates = ["postpone", "fail", "refuse", "reject", ""]
    ground.record(*(thing(fate or "done", fate=fate) for fate in fates))
    ground.settle(*ground.claim())
    ground.record(thing("waits for its turn"))
    days(ground, 2)
    leased = ground.claim(1)

    ground.store.retention.tidy()

    kept = {row[0] for row in ground.sql("SELECT key FROM items")}
    assert kept == {"postpone", "fail", "refuse", "waits for its turn"}
    assert len(leased) == 1


def test_a_changed_finding_starts_the_time_anew(open_ground: OpenGround) -> None:
    ground = open_ground(keeping(days=10))
    ground.record(thing("a"))
    ground.work()
    days(ground, 9)
    ground.record(thing("a", "changed"))
    ground.work()
    days(ground, 9)

    assert ground.store.retention.tidy() == {}


def test_items_go_when_they_leave_the_id_index(open_ground: OpenGround) -> None:
    def first(key: str, body: Thing) -> Presentation:
        return Presentation("things", key, ThingCard(key, body.text), sort=body.seen)

    declared = example.pipeline(
        first_cards={"thing": first},
        id_index=IdIndex("things", newest=3, days=30),
        retention=(Retention("thing", by_id_index=True),),
    )
    object.__setattr__(declared, "presenters", {"thing": first})
    ground = open_ground(declared)
    now = ground.now_ms()
    ground.record(*(thing(str(n), seen=now + n) for n in range(5)))
    ground.work()

    ground.store.retention.tidy()
    assert sorted(row[0] for row in ground.sql("SELECT key FROM items")) == ["2", "3", "4"]
    entry = ground.store.shelf.get("example", "index:things")
    assert entry is not None
    assert msgspec.json.decode(entry.value)["ids"] == ["4", "3", "2"]


def test_a_purged_dead_letter_leaves_the_id_index(open_ground: OpenGround) -> None:
    def first(key: str, body: Thing) -> Presentation:
        return Presentation("things", key, ThingCard(key, body.text), sort=body.seen)

    ground = open_ground(example.pipeline(first_cards={"thing": first}, id_index=IdIndex("things")))
    now = ground.now_ms()
    ground.record(thing("a", seen=now), thing("b", seen=now + 1, fate="die"), thing("c", seen=now + 2))
    ground.work()

    assert ground.store.retention.purge() == 1

    entry = ground.store.shelf.get("example", "index:things")
    assert entry is not None
    assert msgspec.json.decode(entry.value)["ids"] == ["c", "a"]
    assert ground.store.shelf.get("example", "thing:b") is None


def test_dead_letter_days_count_from_the_burial(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(), dead_letter_days=30)
    ground.record(thing("a"))
    days(ground, 100)
    ground.store.operations.transition(ground.item("a").id, "fail", actor="ada", reason="wrong")

    days(ground, 29)
    assert ground.store.retention.tidy().get("dead letters") is None
    days(ground, 2)
    assert ground.store.retention.tidy()["dead letters"] == 1
    assert not ground.has("a")
    assert ground.sql("SELECT key FROM tombstones") == [("a",)]


def test_purge_buries_dead_letters_now(ground: Ground) -> None:
    ground.record(thing("a", fate="die"), thing("b", fate="refuse"), thing("c"))
    ground.work()

    assert ground.store.retention.purge(cause="no such cause") == 0
    assert ground.store.retention.purge(cause="this thing is beyond help") == 1
    assert ground.store.retention.purge(item=ground.item("c").id) == 0
    assert ground.store.retention.purge(pipeline="example") == 1
    assert [row[0] for row in ground.sql("SELECT key FROM items")] == ["c"]
    assert ground.sql("SELECT count(*) FROM tombstones") == [(2,)]


def announce(work: Work) -> Outcome:
    payload = msgspec.json.encode({"channel": "news"})
    return Advance(children=(Finding("example", "delivery", f"news/thing/{work.key}/1", fingerprint(1), payload),))


def announcing(**rule: Any) -> Pipeline:
    usual = example.workflow()
    moves = tuple(
        Transition("show", "checked", "shown", announce, publishes=True) if t.name == "show" else t
        for t in usual.transitions
    )
    thing_ = Workflow("thing", "found", usual.states, moves, usual.terminal, usual.failures, Thing)
    delivery = Workflow(
        "delivery", "queued", ("queued", "sent"), (Transition("send", "queued", "sent", lane="notify"),),
        frozenset({"sent"}),
    )  # fmt: skip
    return Pipeline(
        "example", "Example", "", {"thing": thing_, "delivery": delivery},
        collections=example.pipeline().collections, presenters={"thing": example.present},
        retention=(Retention("thing", **rule),),
    )  # fmt: skip


def test_nothing_goes_while_a_delivery_is_open(open_ground: OpenGround) -> None:
    ground = open_ground(announcing(days=1), dead_letter_days=5)
    ground.record(thing("a"), thing("b"))
    ground.work()
    ground.store.operations.transition(ground.item("b").id, "fail", actor="ada", reason="wrong")
    days(ground, 9)
    assert ground.store.retention.tidy() == {}
    assert ground.store.retention.purge() == 0

    ground.settle(*ground.claim(lane="notify"))
    assert ground.store.retention.tidy() == {"retired:example": 1, "dead letters": 1}


def test_open_deliveries_are_looked_up_and_not_joined(ground: Ground) -> None:
    """A paused channel leaves thousands open: joined with all items they would hold up all tidying."""
    for name in ("items_past_age", "items_beyond_newest", "old_dead_letters", "chosen_dead_letters"):
        with ground.database.transaction() as tx:
            plan = plan_of(tx, name)

        assert "links_by_parent" in plan
        assert "items_pipeline_kind_key_key" in plan or "sqlite_autoindex_items" in plan
        assert "Join" not in plan


def test_what_left_the_index_is_looked_up_by_its_number(ground: Ground) -> None:
    """Else every hundred of them would read all items of their kind."""
    with ground.database.transaction() as tx:
        plan = plan_of(tx, "leaving_among")

    assert "items_pkey" in plan or "SEARCH items USING INTEGER PRIMARY KEY" in plan


def test_retention_does_not_delete_what_got_a_new_life_meanwhile(open_ground: OpenGround) -> None:
    """Retention chose the item; before it deletes, a merge begins a new revision."""
    ground, other = open_ground(keeping(days=1)), open_ground(keeping(days=1))
    ground.record(thing("a"))
    ground.work()
    for each in (ground, other):
        days(each, 2)
    retention, rule = ground.store.retention, Retention("thing", days=1)
    with ground.database.reading() as tx:
        chosen = retention._overdue(tx, ground.pipelines["example"], rule)
    assert len(chosen) == 1
    other.record(thing("a", "changed"))

    with ground.database.transaction() as tx:
        assert retention.bury(tx, chosen, 90, "old") == 0

    assert ground.item("a").revision == 2


def test_the_journal_keeps_every_items_last_row(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(fuse=False), journal_days=10)
    ground.record(thing("a"), thing("b", fate="refuse"))
    ground.work()
    days(ground, 11)

    counts = ground.store.retention.tidy()

    assert counts["journal"] == 5
    for key in "ab":
        (last,) = ground.life(key)
        assert last.to_state == ground.item(key).state


def test_a_terminal_state_that_only_people_leave_is_at_rest(open_ground: OpenGround) -> None:
    workflow = Workflow(
        "thing", "found", ("found", "asked", "done"),
        (Transition("ask", "found", "asked"), Transition("answer", "asked", "done", trigger="manual"),
         Transition("reopen", ANY, "found", trigger="manual")),
        frozenset({"done"}), body=Thing,
    )  # fmt: skip
    ground = open_ground(Pipeline("example", "E", "", {"thing": workflow}, retention=(Retention("thing", days=1),)))
    ground.record(thing("a"))
    ground.work()
    assert ground.item("a").standing == "waits"

    days(ground, 2)
    assert ground.store.retention.tidy() == {"retired:example": 1}
