"""Tombstones: the same content does not come back, a corrected one does, and what is final stays away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.support import example
from tests.support.example import thing
from tests.support.store import Ground

from tidings.model.clock import DAY_MS
from tidings.model.errors import BadInput
from tidings.model.item import Appended
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Retention

OpenGround = Callable[..., Ground]


def final_pipeline() -> Pipeline:
    """The example, with tombstones that nothing brings back."""
    declared = example.pipeline()
    workflow = declared.workflows["thing"]
    return replace(declared, workflows={"thing": replace(workflow, tombstones_are_final=True)})


def purged(ground: Ground, key: str = "a") -> Ground:
    """Record a thing that dies, and forget it."""
    ground.record(thing(key, fate="die"))
    ground.work()
    assert ground.store.retention.purge() == 1
    return ground


def test_a_corrected_upload_of_a_purged_dead_letter_is_new(ground: Ground) -> None:
    purged(ground)

    assert ground.store.intake.append("example", [thing("a", "mended")]) == Appended(new=1)
    ground.merge()
    ground.work()

    assert ground.item("a").standing == "done"
    assert ground.sql("SELECT count(*) FROM tombstones") == [(0,)]


def test_a_corrected_upload_of_an_expired_dead_letter_is_new(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(), dead_letter_days=1)
    ground.record(thing("a", fate="die"))
    ground.work()
    ground.advance(seconds=2 * DAY_MS / 1000)
    assert ground.store.retention.tidy()["dead letters"] == 1

    assert ground.store.intake.append("example", [thing("a", "mended")]) == Appended(new=1)
    assert ground.merge().born == 1


def test_the_same_upload_of_a_purged_dead_letter_is_a_duplicate(ground: Ground) -> None:
    purged(ground)

    assert ground.store.intake.append("example", [thing("a", fate="die")]) == Appended(unchanged=1)
    assert not ground.has("a")


def test_a_trimmed_item_that_its_source_changed_comes_back(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(retention=(Retention("thing", days=1, forget_days=10),)))
    ground.record(thing("a"))
    ground.work()
    ground.advance(seconds=2 * DAY_MS / 1000)
    ground.store.retention.tidy()

    assert ground.record(thing("a", "changed")).born == 1


def test_final_tombstones_keep_changed_findings_away_and_do_not_call_them_duplicates(open_ground: OpenGround) -> None:
    ground = purged(open_ground(final_pipeline()))

    page = [thing("b"), thing("a", "mended"), thing("a", fate="die")]
    appended = ground.store.intake.append("example", page)

    assert appended == Appended(new=1, unchanged=1, buried=(1,))
    (refusal,) = appended.refusals(page, [10, 20, 30])
    assert refusal.line == 20
    assert "tidings tombstones lift example thing a" in refusal.reason
    ground.merge()
    assert not ground.has("a")


def test_a_finding_that_waited_in_the_log_while_its_item_was_purged_is_let_in(ground: Ground) -> None:
    ground.record(thing("a", fate="die"))
    ground.work()
    ground.store.intake.append("example", [thing("a", "mended")])
    ground.store.retention.purge()

    assert ground.merge().born == 1


def test_a_finding_that_waited_in_the_log_is_not_born_where_tombstones_are_final(open_ground: OpenGround) -> None:
    ground = open_ground(final_pipeline())
    ground.record(thing("a", fate="die"))
    ground.work()
    ground.store.intake.append("example", [thing("a", "mended")])
    ground.store.retention.purge()

    merged = ground.merge()

    assert (merged.born, merged.changed, merged.unchanged) == (0, 0, 1)
    assert not ground.has("a")


def test_reading_the_log_again_brings_nothing_back_that_was_removed(ground: Ground) -> None:
    ground.record(thing("a", "first"))
    ground.work()
    ground.record(thing("a", "second", fate="die"))
    ground.work()
    assert ground.store.retention.purge(item=ground.item("a").id) == 1

    ground.store.intake.rewind("example")
    ground.merge()

    assert not ground.has("a")


def test_lifting_a_tombstone_lets_the_same_finding_in(ground: Ground) -> None:
    purged(ground)
    purged(ground, "b")

    assert ground.store.tombstones.lift("example", kind="thing", key="a") == 1

    assert [each.key for each in ground.store.tombstones.list(pipeline="example")] == ["b"]
    assert ground.store.intake.append("example", [thing("a", fate="die"), thing("b", fate="die")]) == Appended(1, 0, 1)


def test_all_tombstones_of_a_pipeline_are_listed_youngest_first_and_lifted(ground: Ground) -> None:
    for key in ("a", "b", "c"):
        purged(ground, key)
        ground.advance(seconds=10)

    assert [each.key for each in ground.store.tombstones.list(limit=2)] == ["c", "b"]
    assert [each.key for each in ground.store.tombstones.list(key="a")] == ["a"]
    assert ground.store.tombstones.list(pipeline="other") == []
    assert ground.store.tombstones.lift("example", kind="other") == 0
    assert ground.store.tombstones.lift("example") == 3


def test_a_key_alone_names_no_tombstone(ground: Ground) -> None:
    with pytest.raises(BadInput, match="needs its kind"):
        ground.store.tombstones.lift("example", key="a")
