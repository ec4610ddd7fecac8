"""Copies take turns: where a pipeline merges copies, each accepted one is worked on, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from tests.support import example
from tests.support.example import Thing, thing
from tests.support.store import LEASE_SECONDS, Ground

OpenGround = Callable[..., Ground]


@pytest.fixture
def turns(open_ground: OpenGround) -> Ground:
    """A store whose things merge their copies; each step is settled, so that copies can arrive between two."""
    return open_ground(example.pipeline(in_turn=True, fuse=False))


def heard(ground: Ground, key: str = "a") -> tuple[str, ...]:
    """Return the texts of all copies that reached the accepted body."""
    item = ground.item(key)
    assert item.accepted_revision is not None
    return msgspec.json.decode(ground.store.items.body(item.id, item.accepted_revision) or b"", type=Thing).heard


def lose_lease(ground: Ground) -> None:
    """Claim, vanish, and be swept."""
    ground.claim_one()
    ground.advance(seconds=LEASE_SECONDS + 1)
    ground.store.items.sweep()


def test_a_copy_that_was_held_when_its_worker_died_is_not_lost_to_the_one_that_waits(turns: Ground) -> None:
    turns.record(thing("a", "one"))
    turns.claim_one()
    turns.record(thing("a", "two"), thing("a", "three"))
    turns.advance(seconds=LEASE_SECONDS + 1)

    turns.store.items.sweep()

    item = turns.item("a")
    assert (item.revision, item.state, item.lost_leases) == (1, "found", 1)
    turns.work()
    assert heard(turns) == ("one", "two", "three")


def test_a_copy_that_arrives_between_two_steps_waits_until_the_one_before_it_is_accepted(turns: Ground) -> None:
    turns.record(thing("a", "one"))
    turns.settle(turns.claim_one())
    assert turns.item("a").state == "read"

    turns.record(thing("a", "two"))

    assert (turns.item("a").state, turns.item("a").revision) == ("read", 1)
    turns.work()
    assert heard(turns) == ("one", "two")


@pytest.mark.parametrize("fate", ["fail", "postpone"])
def test_a_copy_that_is_tried_again_later_keeps_its_turn(turns: Ground, fate: str) -> None:
    turns.record(thing("a", "one", fate=fate))
    turns.settle(turns.claim_one())
    lease = turns.claim_one()
    turns.record(thing("a", "two"))

    turns.settle(lease)

    item = turns.item("a")
    assert (item.revision, item.state, item.waiting_revision) == (1, "read", 2)
    assert item.standing == "open"


@pytest.mark.parametrize("fate", ["die", "reject", "refuse"])
def test_a_copy_that_ended_badly_has_had_its_turn(turns: Ground, fate: str) -> None:
    turns.record(thing("a", "one", fate=fate))
    turns.settle(turns.claim_one())
    lease = turns.claim_one()
    turns.record(thing("a", "two"))

    turns.settle(lease)
    turns.work()

    assert heard(turns) == ("two",)
    assert turns.item("a").standing == "done"


def test_a_copy_that_poisons_its_workers_is_buried_and_the_next_one_begins(turns: Ground) -> None:
    turns.record(thing("a", "poison"))
    lose_lease(turns)
    lose_lease(turns)
    turns.claim_one()
    turns.record(thing("a", "harmless"))
    turns.advance(seconds=LEASE_SECONDS + 1)

    assert turns.store.items.sweep().poisoned == 1

    item = turns.item("a")
    assert (item.standing, item.revision, item.lost_leases, item.waiting_revision) == ("open", 2, 0, None)
    assert [(row.kind, row.ended) for row in turns.life("a")][-3:] == [
        ("swept", "lost"),
        ("swept", "dead"),
        ("changed", "changed"),
    ]
    turns.work()
    assert heard(turns) == ("harmless",)


def test_a_transition_by_hand_that_leads_on_leaves_the_others_waiting(turns: Ground) -> None:
    turns.record(thing("a", "one"))
    turns.claim_one()
    turns.record(thing("a", "two"))
    item = turns.item("a")

    turns.store.operations.transition(item.id, "fail", actor="ada", reason="no good")

    again = turns.item("a")
    assert (again.state, again.revision) == ("found", 2)  # what failed has had its turn

    turns.claim_one()
    turns.record(thing("a", "three"))
    turns.store.operations.transition(item.id, "fail", actor="ada", reason="no good either")
    turns.work()
    assert heard(turns) == ("three",)


def test_a_failed_copy_that_would_be_tried_again_gives_way_to_a_newer_one(turns: Ground) -> None:
    turns.record(thing("a", "one"))
    turns.store.operations.transition(turns.item("a").id, "fail", actor="ada", reason="no good")

    turns.record(thing("a", "two"))
    turns.work()

    assert heard(turns) == ("two",)


def test_where_the_newest_counts_a_lost_lease_begins_the_newest(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(fuse=False))
    ground.record(thing("a", "one"))
    ground.claim_one()
    ground.record(thing("a", "two"), thing("a", "three"))
    ground.advance(seconds=LEASE_SECONDS + 1)

    ground.store.items.sweep()

    ground.work()
    assert ground.card("a") == b'{"id":"a","text":"three"}'
    assert ground.item("a").waiting_revision is None


def test_copies_of_a_thousand_items_survive_a_killed_worker(turns: Ground) -> None:
    keys = [f"k{number}" for number in range(1_000)]
    turns.record(*(thing(key, "first") for key in keys))
    assert len(turns.claim(1_000)) == 1_000
    turns.record(*(thing(key, "second") for key in keys))
    turns.advance(seconds=LEASE_SECONDS + 1)
    while turns.store.items.sweep().expired:
        pass

    turns.work(rounds=200)

    assert {heard(turns, key) for key in keys} == {("first", "second")}
