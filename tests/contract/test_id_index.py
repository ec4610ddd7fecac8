"""The id index says which items there are: whatever it does not list goes, and both stay the same set."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from tests.support import example
from tests.support.example import Thing, ThingCard, thing
from tests.support.store import Ground

from tidings.model.backoff import RetryPolicy
from tidings.model.clock import DAY_MS
from tidings.model.pipeline import Pipeline
from tidings.model.publication import IdIndex, Presentation, Retention

OpenGround = Callable[..., Ground]
PARKS = RetryPolicy(attempts=1, exhausted="park", park_seconds=6 * 3600)


def shown(key: str, body: Thing) -> Presentation:
    return Presentation("things", key, ThingCard(key, body.text), sort=body.seen - body.seen % 1000)


def listing(newest: int = 3, retry: RetryPolicy = PARKS) -> Pipeline:
    declared = example.pipeline(
        first_cards={"thing": shown},
        id_index=IdIndex("things", newest=newest, days=30),
        retention=(Retention("thing", by_id_index=True),),
        retry=retry,
    )
    object.__setattr__(declared, "presenters", {"thing": shown})
    return declared


def at(ground: Ground, minutes: float) -> int:
    return ground.now_ms() + round(minutes * 60_000)


def ids(ground: Ground) -> list[str]:
    entry = ground.store.shelf.get("example", "index:things")
    return msgspec.json.decode(entry.value)["ids"] if entry else []


def keys(ground: Ground) -> list[str]:
    return sorted(row[0] for row in ground.sql("SELECT key FROM items"))


def cards(ground: Ground) -> list[str]:
    return sorted(row[0] for row in ground.sql("SELECT key FROM shelf WHERE id > 0"))


def test_a_parked_item_goes_with_the_list_and_leaves_a_tombstone_and_a_line(open_ground: OpenGround) -> None:
    ground = open_ground(listing())
    ground.record(thing("gone", seen=at(ground, -9), fate="fail"))
    ground.work()
    number = ground.item("gone").id
    assert ground.item("gone").standing == "parked"

    ground.record(*(thing(str(n), seen=at(ground, n)) for n in range(3)))
    ground.work()
    ground.store.retention.tidy()

    assert keys(ground) == ["0", "1", "2"]
    assert cards(ground) == ["thing:0", "thing:1", "thing:2"]
    (stone,) = ground.store.tombstones.list()
    assert (stone.key, stone.item) == ("gone", number)
    (line,) = ground.store.items.life(number)
    assert (line.kind, line.from_state, line.ended) == ("retired", "read", "retired")
    assert line.error is not None
    assert "parked" in line.error
    assert "the weather is bad" in line.error
    assert stone.reason == line.error


def test_the_line_goes_with_the_tombstone(open_ground: OpenGround) -> None:
    ground = open_ground(listing())
    for _ in range(2):
        ground.record(*(thing(str(n), seen=at(ground, n)) for n in range(5)))
        assert ground.sql("SELECT count(*) FROM journal WHERE kind = 'retired'") == [(2,)]
        ground.store.tombstones.lift("example")
        assert ground.sql("SELECT count(*) FROM journal WHERE kind = 'retired'") == [(0,)]
        ground.advance(seconds=60 * DAY_MS / 1000)
        ground.store.retention.tidy()
        assert keys(ground) == []
        ground.advance(seconds=91 * DAY_MS / 1000)
        ground.store.retention.tidy()

    assert ground.sql("SELECT count(*) FROM journal") == [(0,)]
    assert ground.sql("SELECT count(*) FROM tombstones") == [(0,)]


def test_what_grew_too_old_goes_although_nothing_new_came(open_ground: OpenGround) -> None:
    """Without a merge nobody wrote the index again: in the end the whole entry expired, and nothing was retired."""
    ground = open_ground(listing())
    ground.record(thing("old", seen=at(ground, 0)), thing("parked", seen=at(ground, 1), fate="fail"))
    ground.work()

    ground.advance(seconds=29 * DAY_MS / 1000)
    ground.store.retention.tidy()
    assert keys(ground) == ["old", "parked"]
    ground.advance(seconds=11 * DAY_MS / 1000)
    ground.store.retention.tidy()

    assert (keys(ground), cards(ground), ids(ground)) == ([], [], [])
    assert ground.sql("SELECT count(*) FROM tombstones") == [(2,)]


def test_a_lost_index_takes_nothing_young_with_it(open_ground: OpenGround) -> None:
    ground = open_ground(listing())
    ground.record(*(thing(str(n), seen=at(ground, n)) for n in range(3)))
    ground.work()
    ground.write("DELETE FROM shelf WHERE id < 0")

    ground.store.retention.tidy()

    assert keys(ground) == ["0", "1", "2"]
    assert ids(ground) == ["2", "1", "0"]


def test_an_item_without_a_card_goes_when_the_list_is_that_old(open_ground: OpenGround) -> None:
    def fails(key: str, body: Thing) -> Presentation:
        raise ValueError("no card can be made")

    declared = listing()
    object.__setattr__(declared, "first_cards", {"thing": fails})
    ground = open_ground(declared)
    ground.record(thing("bare", fate="fail"))
    ground.work()

    ground.advance(seconds=29 * DAY_MS / 1000)
    ground.store.retention.tidy()
    assert keys(ground) == ["bare"]
    ground.advance(seconds=2 * DAY_MS / 1000)
    ground.store.retention.tidy()
    assert keys(ground) == []


def test_what_is_leased_is_not_taken_from_its_worker(open_ground: OpenGround) -> None:
    ground = open_ground(listing())
    ground.record(thing("held", seen=at(ground, -9)))
    lease = ground.claim_one()
    ground.record(*(thing(str(n), seen=at(ground, n)) for n in range(3)))
    ground.store.retention.tidy()
    assert ground.has("held")

    ground.settle(lease)
    ground.store.retention.tidy()

    assert not ground.has("held")


def test_what_cannot_stay_is_never_begun(open_ground: OpenGround) -> None:
    ground = open_ground(listing(newest=5))
    merged = ground.record(*(thing(f"{n:02}", seen=at(ground, -n)) for n in range(7)))

    assert (merged.born, merged.retired) == (7, 2)
    assert sorted(lease.key for lease in ground.claim(100)) == ["00", "01", "02", "03", "04"]
    assert cards(ground) == [f"thing:0{n}" for n in range(5)]
    assert ground.sql("SELECT key FROM tombstones ORDER BY key") == [("05",), ("06",)]


def test_what_newer_items_push_out_goes_with_their_merge(open_ground: OpenGround) -> None:
    ground = open_ground(listing(newest=3))
    ground.record(*(thing(f"a{n}", seen=at(ground, n)) for n in range(3)))
    ground.record(*(thing(f"b{n}", seen=at(ground, 10 + n)) for n in range(2)))

    assert keys(ground) == ["a2", "b0", "b1"]
    assert ids(ground) == ["b1", "b0", "a2"]
    assert cards(ground) == ["thing:a2", "thing:b0", "thing:b1"]


def test_index_and_shelf_are_compared_as_sets(open_ground: OpenGround) -> None:
    """Two errors used to cancel out: one id without a card, one card without an id."""
    ground = open_ground(listing())
    ground.record(*(thing(str(n), seen=at(ground, n)) for n in range(3)))
    ground.work()
    declared = ground.pipelines["example"]
    assert not ground.store.shelf.index_gap("example", declared)
    _put_index(ground, ["2", "ghost", "0"])

    assert ground.store.shelf.index_gap("example", declared) == {"thing:ghost", "thing:1"}
    ground.store.retention.tidy()
    assert not ground.store.shelf.index_gap("example", declared)
    assert sorted(ids(ground)) == ["0", "1", "2"]
    assert keys(ground) == ["0", "1", "2"]


def test_a_rebuild_leaves_no_ghosts(open_ground: OpenGround) -> None:
    ground = open_ground(listing())
    ground.record(*(thing(str(n), seen=at(ground, n)) for n in range(3)))
    ground.work()
    _put_index(ground, ["2", "ghost", "0"])

    ground.store.rebuilder.rebuild()

    assert sorted(ids(ground)) == ["0", "1", "2"]


def _put_index(ground: Ground, listed: list[str]) -> None:
    """Write an index that no merge would write."""
    sorts = [ground.now_ms()] * len(listed)
    value = msgspec.json.encode({"ids": listed, "sorts": sorts})
    ground.write("UPDATE shelf SET value = :value WHERE key = 'index:things'", value=value)
