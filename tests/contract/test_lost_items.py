"""Items that were lost are born again from the log, and no finding ever stops the merge."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support import example
from tests.support.example import Thing, ThingCard, thing
from tests.support.store import Ground

from tidings.model.publication import IdIndex, Presentation

OpenGround = Callable[..., Ground]


def shown(key: str, body: Thing) -> Presentation:
    return Presentation("things", key, ThingCard(key, body.text), sort=body.seen - body.seen % 1000)


def listing() -> object:
    declared = example.pipeline(first_cards={"thing": shown}, id_index=IdIndex("things"))
    object.__setattr__(declared, "presenters", {"thing": shown})
    return declared


@pytest.mark.parametrize("declare", [listing, example.pipeline])
def test_lost_items_are_born_again_from_the_log(open_ground: OpenGround, declare: Callable[[], object]) -> None:
    ground = open_ground(declare())
    now = ground.now_ms()
    ground.record(*(thing(str(n), seen=now + n) for n in range(5)), thing("dead", fate="die", seen=now))
    ground.work()
    ground.store.retention.purge()
    cards = ground.sql("SELECT key, value FROM shelf WHERE id > 0 ORDER BY key")
    ground.write("DELETE FROM items")

    assert ground.store.rebuilder.recover_lost() == ["example"]
    merged = ground.merge()
    ground.work()

    assert merged.born == 5
    assert not ground.has("dead")
    assert ground.sql("SELECT key, value FROM shelf WHERE id > 0 ORDER BY key") == cards
    assert ground.sql("SELECT count(*) FROM bodies WHERE item NOT IN (SELECT id FROM items)") == [(0,)]
    assert ground.store.rebuilder.recover_lost() == []


def test_nothing_is_lost_where_nothing_was_merged_or_items_are_there(ground: Ground) -> None:
    assert ground.store.rebuilder.recover_lost() == []
    ground.store.intake.append("example", [thing("a")])
    assert ground.store.rebuilder.recover_lost() == []
    ground.merge()
    assert ground.store.rebuilder.recover_lost() == []


def test_what_an_operator_removed_is_not_lost(ground: Ground) -> None:
    ground.record(thing("dead", fate="die"))
    ground.work()
    ground.store.retention.purge()
    assert not ground.has("dead")

    assert ground.store.rebuilder.recover_lost() == []


def test_rebuilding_items_leaves_those_that_are_there_alone(ground: Ground) -> None:
    ground.record(thing("a"), thing("b"))
    ground.work()
    before = ground.item("a")
    ground.write("DELETE FROM items WHERE key = 'b'")

    assert ground.store.rebuilder.begin_items_again("example") == 2
    assert ground.merge().born == 1

    assert ground.item("a") == before
    assert ground.has("b")


def test_a_card_that_a_lost_item_left_does_not_stop_the_merge(open_ground: OpenGround) -> None:
    ground = open_ground(listing())
    now = ground.now_ms()
    ground.record(thing("a", seen=now))
    ground.write("DELETE FROM items")

    merged = ground.record(thing("a", "again", seen=now), thing("b", seen=now))

    assert merged.born == 2
    assert ground.card("a") == b'{"id":"a","text":"again"}'


def test_two_items_that_want_one_card_do_not_stop_the_merge(open_ground: OpenGround) -> None:
    def one(key: str, body: Thing) -> Presentation:
        return Presentation("things", "one", ThingCard(key, body.text), sort=body.seen)

    declared = example.pipeline(first_cards={"thing": one}, id_index=IdIndex("things"))
    ground = open_ground(declared)
    now = ground.now_ms()
    assert ground.record(thing("a", seen=now), thing("b", seen=now)).born == 2
    assert ground.record(thing("c", seen=now), thing("d", seen=now)).born == 2

    assert ground.card("one") == b'{"id":"a","text":"thing a"}'
