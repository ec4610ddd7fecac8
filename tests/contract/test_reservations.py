"""Reservations: what is run before it is born is written once, in the order of the log, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.support import example
from tests.support.engine import Engine
from tests.support.example import thing
from tests.support.own_sql import own_sql
from tests.support.store import LEASE_SECONDS, Ground, altered
from tests.support.waiting import until

from tidings.model.attempt import Attempt
from tidings.model.item import HIGH, LOW, Link
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Merged, Reservation, Settled, Settlement
from tidings.model.workflow import Transition, Work, Workflow
from tidings.process.lanes import LANES, Lane
from tidings.process.worker import Worker
from tidings.store.log import BATCH_BYTES, IntakeLog

OpenGround = Callable[..., Ground]
RIGHT_SECONDS = 15


def append(ground: Ground, *keys: str, **changes: Any) -> None:
    ground.store.intake.append("example", [altered(thing(key), **changes) for key in keys])


def take(ground: Ground, limit: int = 500) -> Reservation:
    merged, reservation = ground.store.intake.claim_findings("example", limit)
    assert merged.read == 0
    assert reservation is not None
    return reservation


def run(ground: Ground, reservation: Reservation) -> list[Settlement]:
    return [ground.attempt(lease) for lease in reservation.leases()]


def write(ground: Ground, reservation: Reservation) -> Settled:
    return ground.store.items.settle(run(ground, reservation))


def keys(reservation: Reservation) -> list[str]:
    return [lease.key for lease in reservation.leases()]


def test_an_item_is_born_where_its_first_attempt_left_it(ground: Ground) -> None:
    append(ground, "a", "b")
    reservation = take(ground)
    assert not ground.has("a"), "nothing is written before it was run"

    settled = write(ground, reservation)
    assert (len(settled.done), settled.merged) == (2, Merged(read=2, born=2, checkpoint=2))

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
    reservation = take(gone, limit=2)
    append(gone, "c")
    assert other.store.intake.claim_findings("example", 500)[1] is not None, "others go on behind it"
    assert other.store.intake.unmerged("example") == 3

    for ground in (gone, other):
        ground.advance(seconds=RIGHT_SECONDS + 1)
    merged, taken = other.store.intake.claim_findings("example", 500)

    assert (merged.born, taken) == (2, None)
    assert (other.item("a").state, other.item("a").attempts) == ("found", 0)
    assert other.store.intake.claim_findings("example", 500)[0].born == 1
    before = gone.dump()
    assert len(write(gone, reservation).stale) == 2
    assert gone.dump() == before, "a right that is over writes nothing"
    other.work()
    assert other.item("a").state == "shown"


def test_a_key_of_two_batches_costs_only_itself_its_run(open_ground: OpenGround) -> None:
    """The second batch cannot know what the first will have brought: of it, only that one item is merged as usual."""
    ground = open_ground()
    append(ground, "a", "b")
    first = take(ground, limit=2)
    append(ground, "b", fingerprint="newer")
    append(ground, "c", "d")
    second = take(ground, limit=3)

    assert len(write(ground, first).done) == 2
    (lost,) = (lease.id for lease in second.leases() if lease.key == "b")
    settled = write(ground, second)
    assert settled.merged == Merged(read=3, born=2, changed=1, checkpoint=5)
    assert (len(settled.done), settled.stale) == (2, frozenset({lost}))

    assert [ground.item(key).state for key in "acd"] == ["shown"] * 3
    assert (ground.item("b").state, ground.item("b").revision) == ("found", 2)
    ground.work()
    assert ground.item("b").accepted_revision == 2


def test_a_slow_worker_writes_late_if_nobody_has_taken_over(ground: Ground) -> None:
    append(ground, "a")
    reservation = take(ground)
    ground.advance(seconds=RIGHT_SECONDS + 1)

    assert write(ground, reservation).merged.born == 1
    assert ground.item("a").state == "shown"


def test_no_more_is_read_at_once_than_memory_is_meant_to_hold(ground: Ground) -> None:
    large = "x" * (BATCH_BYTES // 2)
    ground.store.intake.append("example", [thing(key, large) for key in "abcd"])

    first = take(ground)

    assert keys(first) == ["a"]
    ground.advance(seconds=RIGHT_SECONDS + 1)
    assert ground.merge().born == 4, "and nothing is passed over"


def test_batches_are_written_in_the_order_of_the_log(open_ground: OpenGround) -> None:
    one, two = open_ground(), open_ground()
    append(one, *"abcd")
    first, second = take(one, limit=2), take(two, limit=2)

    settled = write(two, second)
    assert settled.must_wait
    assert (settled.done, settled.stale) == (frozenset(), frozenset())
    assert not two.has("c")
    assert write(one, first).merged.born == 2
    assert write(two, second).merged == Merged(read=2, born=2, checkpoint=4)


def test_what_is_known_buried_or_named_twice_goes_the_usual_way(ground: Ground) -> None:
    ground.record(thing("known"))
    ground.write(
        "INSERT INTO tombstones (pipeline, kind, key, fingerprint, buried_at, forget_at) "
        "VALUES ('example', 'thing', 'buried', 'x', 0, 9999999999999)"
    )
    found = [thing("known", "changed"), thing("twice", "one"), thing("twice", "two"), thing("new")]
    ground.store.intake.append("example", found)
    reservation = take(ground)

    assert keys(reservation) == ["new"]
    merged = write(ground, reservation).merged

    assert (merged.read, merged.born, merged.changed) == (4, 2, 2)
    assert (ground.item("new").state, ground.item("twice").state, ground.item("known").state) == (
        "shown",
        "found",
        "found",
    )
    assert ground.item("twice").revision == 2


def test_an_item_born_meanwhile_is_not_born_again(ground: Ground) -> None:
    append(ground, "a", "b")
    reservation = take(ground)
    ground.write(
        "INSERT INTO items (pipeline, kind, key, fingerprint, state, standing, priority, created_at, changed_at, "
        "state_since) VALUES ('example', 'thing', 'b', 'other', 'shown', 'done', 1, 0, 0, 0)"
    )

    merged = write(ground, reservation).merged

    assert (merged.read, merged.born, merged.changed) == (2, 1, 1)
    assert ground.sql("SELECT count(*) FROM items") == [(2,)]
    ground.work()
    assert {ground.item(key).state for key in "ab"} == {"shown"}


def test_bulk_gives_way_to_what_is_urgent(ground: Ground) -> None:
    append(ground, *"abc", priority=LOW)
    append(ground, "urgent", priority=HIGH)

    merged, reservation = ground.store.intake.claim_findings("example", 2)

    assert (merged.read, reservation) == (2, None), "merging alone gets there faster"
    merged, reservation = ground.store.intake.claim_findings("example", 2)
    assert reservation is not None
    assert "urgent" in keys(reservation)


def test_rewinding_ends_every_right(ground: Ground) -> None:
    append(ground, "a")
    reservation = take(ground)
    ground.store.intake.rewind("example")

    assert len(write(ground, reservation).stale) == 1
    assert not ground.has("a")
    assert ground.merge().born == 1


def test_pipelines_with_first_cards_or_waiting_beginnings_are_merged_at_once(open_ground: OpenGround) -> None:
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

    merged, reservation = ground.store.intake.claim_findings("example")

    assert (merged.born, reservation) == (1, None)


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


def worker(engine: Engine, **changes: Any) -> Worker:
    """Make a worker that claims ten findings at a time."""
    app = engine.app
    lanes = LANES | {"pure": Lane(concurrency=1, batch=5)}
    values: dict[str, Any] = {
        "items": engine.store.items, "log": engine.store.intake, "runner": app.runner, "kit": app.kit,
        "executor": app.executor, "pipelines": app.pipelines, "owner": "tester", "waker": app.waker, "lanes": lanes,
    }  # fmt: skip
    return Worker(**values | changes)


async def test_a_link_nobody_should_have_stated_holds_nothing_up(database_url: str) -> None:
    """Of a new item no link can be there yet. If one is, the batch is merged as usual, and the item states it again."""
    async with Engine(database_url, [example.pipeline()]) as engine:
        with engine.app.database.transaction() as tx:
            tx.put("insert_links", [("example", "below", "thing:a", 1, "thing:p", 7)])
        engine.store.intake.append("example", [thing("a", parent="p"), thing("b")])
        await engine.work_until_idle()

        assert engine.states("thing") == {"shown": 2}
        with engine.app.database.reading() as tx:
            rows = own_sql(tx, "SELECT child, parent FROM links WHERE child = 'thing:a'")
        assert rows == [("thing:a", "thing:p")]


class Abreast(IntakeLog):
    """A log of which a process may reserve two stretches at once, whatever the database."""

    @property
    def reservations_max(self) -> int:
        return 2


async def test_two_stretches_of_one_process_are_written_in_order(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline()]) as engine:
        names = [f"{number}" for number in range(70)]
        engine.store.intake.append("example", [thing(key) for key in names])
        await worker(engine, log=Abreast(engine.app.database, engine.app.pipelines)).until_idle()

        assert engine.states("thing") == {"shown": 70}
        assert engine.store.intake.unmerged("example") == 0
        with engine.app.database.reading() as tx:
            assert [row[0] for row in own_sql(tx, "SELECT key FROM items ORDER BY id")] == names
            assert own_sql(tx, "SELECT count(*) FROM journal WHERE ended = 'advanced'") == [(70,)]


@pytest.mark.parametrize("own", [1, 2])
async def test_a_worker_waits_for_the_stretch_before_its_own(database_url: str, own: int) -> None:
    """Another process has reserved the first stretch: what comes after it is run, and written once that is."""
    async with Engine(database_url, [example.pipeline()]) as engine:
        engine.store.intake.append("example", [thing(f"{number}") for number in range(10 + 10 * own)])
        neighbor = engine.store.intake.claim_findings("example", 10)[1]
        assert neighbor is not None
        stop = asyncio.Event()
        waiting = worker(engine, log=Abreast(engine.app.database, engine.app.pipelines))
        running = asyncio.create_task(waiting.run(stop))
        await until(lambda: len(reserved(engine)) == 1 + own)
        assert engine.states("thing") == {}

        runner = engine.app.runner
        attempts = [runner.begin(lease, LEASE_SECONDS) for lease in neighbor.leases()]
        settlements = [runner.run_pure(attempt) for attempt in attempts if isinstance(attempt, Attempt)]
        settled = await engine.app.executor.write(engine.store.items.settle, [s for s in settlements if s is not None])
        assert len(settled.done) == 10
        await until(lambda: engine.states("thing") == {"shown": 10 + 10 * own})
        stop.set()
        await running

        assert reserved(engine) == []


async def test_stretches_of_a_killed_worker_hold_up_no_other(database_url: str) -> None:
    """All places of a process are taken by stretches that wait for those of the dead one: waiting merges them."""
    async with Engine(database_url, [example.pipeline()]) as engine:
        engine.store.intake.append("example", [thing(f"{number}") for number in range(70)])
        for _ in range(4):
            assert engine.store.intake.claim_findings("example", 10)[1] is not None
        engine.advance_clock(seconds=RIGHT_SECONDS + 1)

        async with asyncio.timeout(60):
            await worker(engine).until_idle()

        assert engine.states("thing") == {"shown": 70}
        assert reserved(engine) == []


def reserved(engine: Engine) -> list[Any]:
    with engine.app.database.reading() as tx:
        return own_sql(tx, "SELECT through FROM reservations ORDER BY through")


async def test_what_is_not_run_in_time_is_merged_as_usual(database_url: str) -> None:
    """A slow batch does not outlast its reservation; the rest of it is claimed as usual."""
    now = [0.0]
    unborn: list[str] = []

    def dawdle(work: Work) -> Outcome:
        if work.key == "slow":
            now[0] += 900
        elif now[0] and work.item_id not in {row.id for row in engine.items("thing")}:
            unborn.append(work.key)
        return Advance()

    workflow = Workflow(
        "thing", "found", ("found", "done"), (Transition("dawdle", "found", "done", dawdle),), frozenset({"done"})
    )
    async with Engine(database_url, [Pipeline("example", "Example", "", {"thing": workflow})]) as engine:
        engine.store.intake.append("example", [thing("slow"), *(thing(f"{n}") for n in range(9))])
        await worker(engine, monotonic=lambda: now[0]).until_idle()

        assert engine.states("thing") == {"done": 10}
        assert unborn == [], "all after the slow one were items when they were run"


def test_a_reservation_that_is_given_back_is_merged_at_once(ground: Ground) -> None:
    append(ground, "a", "b")
    reservation = take(ground)

    ground.store.intake.give_back(reservation)

    assert (ground.item("a").state, ground.item("b").attempts) == ("found", 0)
    assert len(write(ground, reservation).stale) == 2
    ground.work()
    assert {ground.item(key).state for key in "ab"} == {"shown"}


def test_the_journal_keeps_every_step_as_it_was(ground: Ground) -> None:
    """Short where nothing is remarkable, whole where something is: what is read is what was written."""
    ground.record(thing("plain"), thing("refused", fate="refuse"), thing("late", fate="postpone"))
    leases = ground.claim()
    settlements = {lease.key: ground.attempt(lease) for lease in leases}
    ground.store.items.settle(list(settlements.values()))

    told = {
        key: [(s.transition, s.from_state, s.to_state, s.criterion, s.verdict) for s in ground.life(key)[-1].steps]
        for key in settlements
    }
    read = ("read", "found", "read", None, None)
    assert told == {
        "plain": [read, ("check", "read", "checked", "is_wanted", "yes"), ("show", "checked", "shown", None, None)],
        "refused": [read, ("check", "read", "read", "is_wanted", "fate is 'refuse'")],
        "late": [read],
    }


def test_the_example_begins_pure_only_where_its_steps_are_fused() -> None:
    assert example.workflow().begins_pure
    assert not example.workflow(fuse=False).begins_pure
