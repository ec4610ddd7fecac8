"""Shelf and index are read models: rebuilding them from the items changes not a byte."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support import example
from tests.support.example import Thing, ThingCard, thing
from tests.support.store import Ground

from tidings.model.publication import IdIndex, Presentation

OpenGround = Callable[..., Ground]


def sort_of(key: str) -> int:
    """A time far ahead: what readers see must follow from what processing does not change."""
    return 1_900_000_000_000 + (int(key) if key.isdigit() else 0)


def present(key: str, body: Thing) -> Presentation | None:
    if body.text == "withdrawn":
        return None
    return Presentation("things", key, ThingCard(key, body.text), sort=sort_of(key))


def first(key: str, body: Thing) -> Presentation:
    return Presentation("things", key, ThingCard(key, body.text), sort=sort_of(key))


def seen(ground: Ground) -> dict[str, list[tuple[object, ...]]]:
    """What readers can see, without times and numbers of writing: a card that did not change was not written."""
    return {"cards": ground.sql("SELECT id, pipeline, key, collection, sort, value FROM shelf ORDER BY id")}


def test_a_rebuild_equals_the_live_shelf(open_ground: OpenGround) -> None:
    declared = example.pipeline(first_cards={"thing": first}, id_index=IdIndex("things", newest=40, days=30))
    object.__setattr__(declared, "presenters", {"thing": present})
    ground = open_ground(declared)
    chance = random.Random(7)
    fates = ["", "", "", "reject", "refuse", "die", "postpone"]
    texts = ["apples", "pears", "withdrawn", "Äpfel \0 and NUL", "line\nbreak"]
    for _ in range(6):
        some = chance.sample(range(60), 25)
        ground.record(*(thing(str(n), chance.choice(texts), fate=chance.choice(fates)) for n in some))
        ground.work()
    ground.store.retention.tidy()  # takes the ids of withdrawn cards out of the index
    before = seen(ground)
    assert len(before["cards"]) > 20
    version = ground.store.shelf.version("example")

    ground.store.rebuilder.rebuild()

    assert seen(ground) == before
    assert ground.store.shelf.version("example") > version


def test_a_rebuild_mends_what_was_lost_or_forged(ground: Ground) -> None:
    ground.record(*(thing(str(n), f"text {n}") for n in range(5)))
    ground.work()
    before = seen(ground)
    ground.write("UPDATE shelf SET value = :value WHERE id = (SELECT max(id) FROM shelf)", value=b'"forged"')
    ground.write("DELETE FROM shelf WHERE id = (SELECT min(id) FROM shelf)")

    assert ground.store.rebuilder.rebuild() == 5

    assert seen(ground) == before


def test_a_rebuild_leaves_entries_of_no_item_alone(ground: Ground) -> None:
    ground.store.shelf.put("example", "note", b"1")
    ground.record(thing("a"))
    ground.work()

    ground.store.rebuilder.rebuild()

    entry = ground.store.shelf.get("example", "note")
    assert entry is not None
    assert entry.value == b"1"


def test_a_first_card_follows_the_finding_until_something_is_accepted(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(first_cards={"thing": first}))
    ground.record(thing("a", "one", fate="reject"))
    ground.work()
    ground.record(thing("a", "two", fate="reject"))
    ground.work()
    assert ground.card("a") == b'{"id":"a","text":"two"}'
    before = seen(ground)

    ground.store.rebuilder.rebuild()

    assert seen(ground) == before


def test_a_rebuild_leaves_every_id_where_the_merge_has_put_it(open_ground: OpenGround) -> None:
    def dated(key: str, body: Thing) -> Presentation:
        return Presentation("things", key, ThingCard(key, body.text), sort=body.seen)

    declared = example.pipeline(first_cards={"thing": dated}, id_index=IdIndex("things"))
    object.__setattr__(declared, "presenters", {"thing": dated})
    ground = open_ground(declared)
    now = ground.now_ms()
    ground.record(thing("a", seen=now), thing("b", seen=now + 10))
    ground.work()
    ground.record(thing("a", "redated", seen=now + 20))
    ground.work()
    before = seen(ground)

    ground.store.rebuilder.rebuild()

    assert seen(ground) == before
