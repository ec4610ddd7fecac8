"""The shelf: cards under stable keys, an unchanged value is no write, versions only grow."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
from tests.support import example
from tests.support.example import Thing, ThingCard, thing
from tests.support.store import Ground

from tidings.model.clock import DAY_MS
from tidings.model.publication import IdIndex, Presentation
from tidings.store.cards import Card, put_cards

OpenGround = Callable[..., Ground]


def writes_today(ground: Ground) -> int:
    return sum(b.spent for b in ground.store.budgets.today() if b.name == "shelf_writes:example")


def test_an_entry_is_put_read_and_deleted(ground: Ground) -> None:
    shelf = ground.store.shelf

    assert shelf.get("example", "note") is None
    assert shelf.put("example", "note", b'"one"')
    entry = shelf.get("example", "note")
    assert entry is not None
    assert (entry.key, entry.value, entry.revision) == ("note", b'"one"', 1)
    assert abs(entry.written_at - ground.now_ms()) < 5_000

    assert shelf.put("example", "note", b'"two"')
    again = shelf.get("example", "note")
    assert again is not None
    assert (again.value, again.revision) == (b'"two"', 2)
    assert again.version > entry.version
    assert shelf.delete("example", "note")
    assert not shelf.delete("example", "note")
    assert shelf.get("example", "note") is None


def test_an_unchanged_value_is_no_write(ground: Ground) -> None:
    ground.store.shelf.put("example", "note", b"1")
    before = ground.store.shelf.get("example", "note")
    counted = writes_today(ground)

    assert not ground.store.shelf.put("example", "note", b"1")

    assert ground.store.shelf.get("example", "note") == before
    assert writes_today(ground) == counted == 1


def test_writes_are_counted_per_day(ground: Ground) -> None:
    for number in range(3):
        ground.store.shelf.put("example", "note", str(number).encode())
    assert writes_today(ground) == 3

    ground.advance(seconds=DAY_MS / 1000)
    assert writes_today(ground) == 0
    ground.store.shelf.put("example", "note", b"tomorrow")
    assert writes_today(ground) == 1


def test_cards_and_entries_are_counted_alike(ground: Ground) -> None:
    ground.record(thing("a"), thing("b"))
    ground.work()

    assert writes_today(ground) == 2


def test_an_entry_expires_by_the_database_clock(ground: Ground) -> None:
    ground.store.shelf.put("example", "note", b"1", ttl_seconds=60)
    ground.advance(seconds=59)
    assert ground.store.shelf.get("example", "note") is not None

    ground.advance(seconds=2)
    assert ground.store.shelf.get("example", "note") is None
    assert ground.store.shelf.get_many("example", ["note"]) == {}
    assert ground.store.shelf.with_prefix("example", "no") == []
    version = ground.store.shelf.version("example")
    assert ground.store.retention.tidy()["shelf entries"] == 1
    assert ground.sql("SELECT count(*) FROM shelf") == [(0,)]
    assert ground.store.shelf.version("example") > version


def test_entries_are_listed_by_prefix(ground: Ground) -> None:
    for key in ("note:b", "note:a", "notes", "other:a", "note:é"):
        ground.store.shelf.put("example", key, b"1")

    assert [e.key for e in ground.store.shelf.with_prefix("example", "note:")] == ["note:a", "note:b", "note:é"]
    assert [e.key for e in ground.store.shelf.with_prefix("example", "note:", limit=1)] == ["note:a"]
    assert ground.store.shelf.with_prefix("another", "note:") == []


def test_a_collection_is_listed_from_the_highest_sort_down(ground: Ground) -> None:
    keys = ["a", "bb", "cc", "ddd", "eeee"]
    ground.record(*(thing(key) for key in keys))
    ground.work()
    shelf = ground.store.shelf

    page = shelf.newest("example", "things", limit=2)
    assert [e.key for e in page] == ["thing:eeee", "thing:ddd"]
    rest = shelf.newest("example", "things", limit=9, after=(page[-1].sort, page[-1].key))
    assert [e.key for e in rest] == ["thing:cc", "thing:bb", "thing:a"]
    assert shelf.count("example", "things") == 5
    assert set(shelf.get_many("example", ["thing:a", "thing:bb", "thing:none"])) == {"thing:a", "thing:bb"}


def test_the_version_grows_with_every_change_and_only_for_its_pipeline(ground: Ground) -> None:
    versions = [ground.store.shelf.version("example")]
    ground.store.shelf.put("example", "note", b"1")
    versions.append(ground.store.shelf.version("example"))
    ground.record(thing("a"))
    ground.work()
    versions.append(ground.store.shelf.version("example"))
    ground.store.shelf.delete("example", "note")
    versions.append(ground.store.shelf.version("example"))

    assert versions == sorted(set(versions))
    assert ground.store.shelf.version("another") == 0


def test_a_withdrawn_card_leaves_shelf_and_index(open_ground: OpenGround) -> None:
    def present(key: str, body: Thing) -> Presentation | None:
        return None if body.text == "gone" else example.present(key, body)

    declared = example.pipeline()
    object.__setattr__(declared, "presenters", {"thing": present})
    ground = open_ground(declared)
    ground.record(thing("a", "here"))
    ground.work()
    assert ground.card("a") is not None

    ground.record(thing("a", "gone"))
    ground.work()

    assert ground.card("a") is None
    assert ground.store.changes.changes("example", None, 10).changes[-1].value is None
    assert ground.item("a").accepted_revision == 2


def test_a_cards_revision_never_decreases(ground: Ground) -> None:
    ground.record(thing("a", "one"))
    ground.work()
    revisions = []
    for text in ("two", "three", "two"):
        ground.record(thing("a", text))
        ground.work()
        entry = ground.store.shelf.get("example", "thing:a")
        assert entry is not None
        revisions.append(entry.revision)
        assert msgspec.json.decode(entry.value)["text"] == text

    assert revisions == sorted(revisions)


def test_an_older_revision_does_not_replace_a_newer_card(ground: Ground) -> None:
    """Whoever comes late with what was true before must not win, whichever way it came."""
    for text in ("one", "two"):
        ground.record(thing("a", text))
        ground.work()
    item, pipeline = ground.item("a"), ground.pipelines["example"]

    with ground.database.transaction() as tx:
        for revision in (item.revision - 1, 0):
            shown = pipeline.show(example.present("a", Thing("a", "one")))
            put_cards(tx, pipeline, [Card(item.id, revision, shown)])

    assert msgspec.json.decode(ground.card("a") or b"{}")["text"] == "two"


def first_card(key: str, body: Thing) -> Presentation:
    return Presentation("things", key, ThingCard(key, f"first {body.text}"), sort=body.seen)


def indexed_pipeline(newest: int = 3) -> object:
    return example.pipeline(first_cards={"thing": first_card}, id_index=IdIndex("things", newest=newest, days=30))


def test_the_merge_shows_new_items_at_once_and_keeps_the_id_index(open_ground: OpenGround) -> None:
    ground = open_ground(indexed_pipeline())
    now = ground.now_ms()

    ground.record(*(thing(str(n), seen=now - n) for n in range(5)))

    assert ground.card("0") == b'{"id":"0","text":"first thing 0"}'
    entry = ground.store.shelf.get("example", "index:things")
    assert entry is not None
    assert msgspec.json.decode(entry.value)["ids"] == ["0", "1", "2"]


def test_every_id_in_the_index_has_a_card(open_ground: OpenGround) -> None:
    ground = open_ground(indexed_pipeline(newest=10))
    now = ground.now_ms()
    for number in range(6):
        ground.record(thing(str(number), seen=now + number))
        expect_a_card_for_each_id(ground, number + 1)
        ground.work()
        expect_a_card_for_each_id(ground, number + 1)


def expect_a_card_for_each_id(ground: Ground, count: int) -> None:
    entry = ground.store.shelf.get("example", "index:things")
    assert entry is not None
    keys = [f"thing:{i}" for i in msgspec.json.decode(entry.value)["ids"]]
    assert len(keys) == count
    assert set(ground.store.shelf.get_many("example", keys)) == set(keys)


def test_the_id_index_forgets_by_age(open_ground: OpenGround) -> None:
    ground = open_ground(indexed_pipeline())
    ground.record(thing("old", seen=ground.now_ms()))
    ground.advance(seconds=31 * DAY_MS / 1000)
    ground.record(thing("new", seen=ground.now_ms()))

    entry = ground.store.shelf.get("example", "index:things")
    assert entry is not None
    assert msgspec.json.decode(entry.value)["ids"] == ["new"]


def test_entries_put_at_once_by_many_processes_all_stand(open_ground: OpenGround) -> None:
    """Entries of no item need ids of their own; two processes must not choose the same."""
    processes = [open_ground() for _ in range(4)]

    def put(number: int) -> None:
        for each in range(10):
            processes[number].store.shelf.put(f"pipeline {number}", f"note {each}", b"1")
            processes[number].store.shelf.put("shared", f"note {each}", str(number).encode())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(4)))

    assert processes[0].sql("SELECT count(*) FROM shelf") == [(50,)]
