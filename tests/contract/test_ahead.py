"""Running ahead: what is run before it is born is written once, in the order of the log, or not at all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests import example
from tests.engine import Engine
from tests.example import thing
from tests.ground import LEASE_SECONDS, Ground, altered
from tests.processes import until

from tidings.model.item import HIGH, LOW, Link
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Ahead, Merged, Settlement
from tidings.model.workflow import Transition, Work, Workflow
from tidings.process.merger import Merger
from tidings.store.intake import BATCH_BYTES

OpenGround = Callable[..., Ground]
RIGHT_SECONDS = 15


def append(ground: Ground, *keys: str, **changes: Any) -> None:
    ground.store.intake.append("example", [altered(thing(key), **changes) for key in keys])


def take(ground: Ground, limit: int = 500) -> Ahead:
    merged, ahead = ground.store.intake.merge_ahead("example", limit=limit)
    assert merged.read == 0
    assert ahead is not None
    return ahead


def run(ground: Ground, ahead: Ahead) -> list[Settlement]:
    outcomes = [ground.runner.run_ahead(lease, LEASE_SECONDS) for lease in ahead.leases]
    return [outcome for outcome in outcomes if outcome is not None]


def write(ground: Ground, ahead: Ahead, settlements: list[Settlement] | None = None) -> Merged:
    chosen = run(ground, ahead) if settlements is None else settlements
    intake = ground.store.intake
    return intake.merge_ahead("example", ahead, intake.prepare(ahead, chosen), limit=0)[0]


def test_an_item_that_is_run_ahead_is_born_where_that_left_it(ground: Ground) -> None:
    append(ground, "a", "b")
    ahead = take(ground)
    assert not ground.has("a"), "nothing is written before it was run"

    assert write(ground, ahead) == Merged(read=2, born=2, checkpoint=2, ran=2)

    item = ground.item("a")
    assert (item.state, item.standing, item.revision, item.accepted_revision) == ("shown", "done", 1, 1)
    assert (item.lease_token, item.lease_until, item.attempts) == (1, None, 0)
    assert [(row.kind, row.from_state, row.to_state) for row in ground.life("a")] == [
        ("born", "", "found"),
        ("attempt", "found", "shown"),
    ]
    assert [step.transition for step in ground.life("a")[1].steps] == ["read", "check", "show"]
    assert ground.card("a") is not None
    assert ground.store.intake.unmerged("example") == 0
    assert ground.claim() == []


def test_both_ways_lead_to_the_same(open_ground: OpenGround, tmp_path: Any) -> None:
    """Whatever its fate, an item that was run ahead stands as one that was merged, claimed and settled."""
    fates = ("", "fail", "break", "reject", "postpone", "refuse", "die")
    findings = [thing(f"{n}", fate=fate, parent="0" if n else None) for n, fate in enumerate(fates)]
    ahead_ground, usual = open_ground(), Ground(f"sqlite:///{tmp_path / 'usual.db'}")
    try:
        ahead_ground.store.intake.append("example", findings)
        write(ahead_ground, take(ahead_ground))
        usual.record(*findings)
        usual.settle(*usual.claim(100))

        for key in map(str, range(len(fates))):
            one, other = ahead_ground.item(key), usual.item(key)
            for name in (
                "state",
                "standing",
                "lane",
                "attempts",
                "accepted_revision",
                "last_error",
                "cause",
                "revision",
            ):
                assert getattr(one, name) == getattr(other, name), (key, name)
            assert (one.due_at is None) == (other.due_at is None)
            assert ahead_ground.card(key) == usual.card(key)
            assert [row.ended for row in ahead_ground.life(key)] == [row.ended for row in usual.life(key)]
        for relation in ("below",):
            kids = ahead_ground.store.links.children("example", relation, "thing:0")
            assert kids == usual.store.links.children("example", relation, "thing:0")
    finally:
        usual.close()


def test_a_worker_that_vanished_leaves_its_batch_to_the_usual_way(open_ground: OpenGround) -> None:
    gone, other = open_ground(), open_ground()
    append(gone, "a", "b")
    ahead = take(gone, limit=2)
    append(gone, "c")
    assert other.store.intake.merge_ahead("example", limit=500)[1] is not None, "others go on behind it"
    assert other.store.intake.unmerged("example") == 3

    for ground in (gone, other):
        ground.advance(seconds=RIGHT_SECONDS + 1)
    merged, taken = other.store.intake.merge_ahead("example", limit=500)

    assert (merged.born, taken) == (2, None)
    assert (other.item("a").state, other.item("a").attempts) == ("found", 0)
    assert other.store.intake.merge_ahead("example", limit=0)[0].born == 1
    before = gone.dump()
    assert write(gone, ahead).stale == 2
    assert gone.dump() == before, "a right that is over writes nothing"
    other.work()
    assert other.item("a").state == "shown"


def test_a_slow_worker_writes_late_if_nobody_has_taken_over(ground: Ground) -> None:
    append(ground, "a")
    ahead = take(ground)
    ground.advance(seconds=RIGHT_SECONDS + 1)

    assert write(ground, ahead).born == 1
    assert ground.item("a").state == "shown"


def test_no_more_is_read_at_once_than_memory_is_meant_to_hold(ground: Ground) -> None:
    large = "x" * (BATCH_BYTES // 2)
    ground.store.intake.append("example", [thing(key, large) for key in "abcd"])

    first = take(ground)

    assert [lease.key for lease in first.leases] == ["a"]
    ground.advance(seconds=RIGHT_SECONDS + 1)
    assert ground.merge().born == 4, "and nothing is passed over"


def test_batches_are_written_in_the_order_of_the_log(open_ground: OpenGround) -> None:
    one, two = open_ground(), open_ground()
    append(one, *"abcd")
    first, second = take(one, limit=2), take(two, limit=2)
    assert not two.store.intake.comes_next(second)

    assert write(two, second).waits
    assert not two.has("c")
    assert write(one, first).born == 2
    assert two.store.intake.comes_next(second)
    assert write(two, second) == Merged(read=2, born=2, checkpoint=4, ran=2)


def test_what_is_known_buried_or_named_twice_goes_the_usual_way(ground: Ground) -> None:
    ground.record(thing("known"))
    ground.write(
        "INSERT INTO tombstones (pipeline, kind, key, fingerprint, buried_at, forget_at) "
        "VALUES ('example', 'thing', 'buried', 'x', 0, 9999999999999)"
    )
    found = [thing("known", "changed"), thing("twice", "one"), thing("twice", "two"), thing("new")]
    ground.store.intake.append("example", found)
    ahead = take(ground)

    assert [lease.key for lease in ahead.leases] == ["new"]
    merged = write(ground, ahead)

    assert (merged.read, merged.born, merged.changed) == (4, 2, 2)
    assert (ground.item("new").state, ground.item("twice").state, ground.item("known").state) == (
        "shown",
        "found",
        "found",
    )
    assert ground.item("twice").revision == 2


def test_an_item_born_meanwhile_is_not_born_again(ground: Ground) -> None:
    append(ground, "a", "b")
    ahead = take(ground)
    ground.write(
        "INSERT INTO items (pipeline, kind, key, fingerprint, state, standing, priority, created_at, changed_at, "
        "state_since) VALUES ('example', 'thing', 'b', 'other', 'shown', 'done', 1, 0, 0, 0)"
    )

    merged = write(ground, ahead)

    assert (merged.read, merged.born, merged.changed) == (2, 1, 1)
    assert ground.sql("SELECT count(*) FROM items") == [(2,)]
    ground.work()
    assert {ground.item(key).state for key in "ab"} == {"shown"}


def test_bulk_gives_way_to_what_is_urgent(ground: Ground) -> None:
    append(ground, *"abc", priority=LOW)
    append(ground, "urgent", priority=HIGH)

    merged, ahead = ground.store.intake.merge_ahead("example", limit=2)

    assert (merged.read, ahead) == (2, None), "merging alone gets there faster"
    merged, ahead = ground.store.intake.merge_ahead("example", limit=2)
    assert ahead is not None
    assert "urgent" in [lease.key for lease in ahead.leases]


def test_rewinding_ends_every_right(ground: Ground) -> None:
    append(ground, "a")
    ahead = take(ground)
    ground.store.intake.rewind("example")

    assert write(ground, ahead).stale == 1
    assert not ground.has("a")
    assert ground.merge().born == 1


def test_pipelines_with_first_cards_or_waiting_beginnings_do_not_run_ahead(open_ground: OpenGround) -> None:
    async def wait(work: Work, kit: Any) -> Outcome:
        raise AssertionError("never run here")

    waiting = Workflow(
        "thing",
        "found",
        ("found", "done"),
        (Transition("wait", "found", "done", wait, lane="fetch"),),
        frozenset({"done"}),
    )
    ground = open_ground(Pipeline("example", "Example", "", {"thing": waiting}))
    append(ground, "a")

    merged, ahead = ground.store.intake.merge_ahead("example")

    assert (merged.born, ahead) == (1, None)


async def test_an_outcome_that_cannot_be_written_costs_nobody_else_anything(database_url: str) -> None:
    """A processor states a link that is not its to state: the batch is refused, and each gets an attempt of its own."""

    def state(work: Work) -> Outcome:
        foreign = (Link("thing:x", "thing:y", "below"),) if work.key == "bad" else ()
        return Advance(links=foreign)

    workflow = Workflow(
        "thing", "found", ("found", "done"), (Transition("state", "found", "done", state),), frozenset({"done"})
    )
    async with Engine(database_url, [Pipeline("example", "Example", "", {"thing": workflow})]) as engine:
        engine.store.intake.append("example", [thing("good"), thing("bad"), thing("fine")])
        await engine.work_until_idle()

        assert engine.states("thing") == {"done": 2, "found": 1}
        assert engine.item("thing", "bad").item.standing == "dead"


async def test_what_is_not_run_in_time_is_born_unrun(database_url: str) -> None:
    """A slow batch does not outlast its right; the rest of it is claimed as usual."""
    go_on = threading.Event()

    def dawdle(work: Work) -> Outcome:
        if work.key == "slow":
            go_on.wait(0.2)
        return Advance()

    workflow = Workflow(
        "thing", "found", ("found", "done"), (Transition("dawdle", "found", "done", dawdle),), frozenset({"done"})
    )
    async with Engine(database_url, [Pipeline("example", "Example", "", {"thing": workflow})]) as engine:
        engine.store.intake.append("example", [thing("slow"), *(thing(f"{n}") for n in range(20))])

        async def active() -> tuple[str, ...]:
            return ("example",)

        with ThreadPoolExecutor(1) as threads:
            merging = Merger(
                intake=engine.store.intake,
                runner=engine.app.runner,
                executor=engine.app.executor,
                threads=threads,
                waker=engine.app.waker,
                active=active,
                report=lambda settlements, now_ms: None,
                batch=500,
                lease_seconds=0.3,
            )
            stop = asyncio.Event()
            running = asyncio.create_task(merging.run(stop))
            await until(lambda: sum(engine.states("thing").values()) == 21)
            stop.set()
            await running

        assert engine.states("thing") == {"done": 1, "found": 20}
        await engine.work_until_idle()
        assert engine.states("thing") == {"done": 21}


def test_the_journal_keeps_every_step_as_it_was(ground: Ground) -> None:
    """Short where nothing is remarkable, whole where something is: what is read is what was written."""
    ground.record(thing("plain"), thing("refused", fate="refuse"), thing("late", fate="postpone"))
    leases = ground.claim()
    settlements = {lease.key: ground.attempt(lease) for lease in leases}
    ground.store.items.settle(list(settlements.values()))

    for key, settlement in settlements.items():
        assert ground.life(key)[-1].steps == list(settlement.steps)


def test_the_example_runs_ahead_only_where_its_steps_are_fused() -> None:
    assert example.workflow().runs_ahead
    assert not example.workflow(fuse=False).runs_ahead
