"""Running ahead: what is run before it is born is written once, in the order of the log, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
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
from tidings.store.intake import BATCH_BYTES, IntakeLog

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


def test_a_key_of_two_batches_costs_only_itself_its_run(open_ground: OpenGround) -> None:
    """The second batch cannot know what the first will have brought: of it, only that one item is merged as usual."""
    ground = open_ground()
    append(ground, "a", "b")
    first = take(ground, limit=2)
    append(ground, "b", fingerprint="newer")
    append(ground, "c", "d")
    second = take(ground, limit=3)

    assert write(ground, first).ran == 2
    (lost,) = (lease.id for lease in second.leases if lease.key == "b")
    assert write(ground, second) == Merged(read=3, born=2, changed=1, checkpoint=5, ran=2, vain=frozenset({lost}))

    assert [ground.item(key).state for key in "acd"] == ["shown"] * 3
    assert (ground.item("b").state, ground.item("b").revision) == ("found", 2)
    ground.work()
    assert ground.item("b").accepted_revision == 2


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


def merger(engine: Engine, threads: ThreadPoolExecutor, **options: Any) -> Merger:
    async def active() -> tuple[str, ...]:
        return ("example",)

    return Merger(
        intake=options.pop("intake", engine.store.intake),
        runner=engine.app.runner,
        executor=engine.app.executor,
        threads=threads,
        waker=engine.app.waker,
        active=active,
        report=lambda settlements, now_ms: None,
        **options,
    )


class Counted(IntakeLog):
    """A log that counts how often it is asked for a batch."""

    abreast = 2
    asked = turns = 0

    def comes_next(self, ran: Ahead) -> bool:
        self.turns += 1
        return super().comes_next(ran)

    def merge_ahead(self, *args: Any, **options: Any) -> tuple[Merged, Ahead | None]:
        self.asked += 1
        return super().merge_ahead(*args, **options)


async def test_a_link_nobody_should_have_stated_holds_nothing_up(database_url: str) -> None:
    """Of a new item no link can be there yet. If one is, the batch is merged as usual, and the item states it again."""
    async with Engine(database_url, [example.pipeline()]) as engine:
        with engine.app.database.transaction() as tx:
            tx.many("insert_link", [("example", "below", "thing:a", 1, "thing:p", 7)])
        engine.store.intake.append("example", [thing("a", parent="p"), thing("b")])
        await engine.work_until_idle()

        assert engine.states("thing") == {"shown": 2}
        with engine.app.database.reading() as tx:
            rows = tx.sql("SELECT child, parent FROM links WHERE child = 'thing:a'", {})
        assert rows == [("thing:a", "thing:p")]


async def test_two_batches_of_one_process_are_written_in_order(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline()]) as engine:
        keys = [f"{number}" for number in range(70)]
        engine.store.intake.append("example", [thing(key) for key in keys])
        intake = Counted(engine.app.database, engine.app.pipelines)
        with ThreadPoolExecutor(1) as threads:
            stop = asyncio.Event()
            running = asyncio.create_task(merger(engine, threads, intake=intake, batch=10, lease_seconds=900).run(stop))
            await until(lambda: engine.states("thing") == {"shown": 70})
            stop.set()
            await running

        assert engine.store.intake.unmerged("example") == 0
        with engine.app.database.reading() as tx:
            assert [row[0] for row in tx.sql("SELECT key FROM items ORDER BY id", {})] == keys
            assert tx.sql("SELECT count(*) FROM journal WHERE ended = 'advanced'", {}) == [(70,)]


@pytest.mark.parametrize("own", [1, 2])
async def test_who_waits_for_a_neighbor_asks_for_no_more_meanwhile(database_url: str, own: int) -> None:
    """Each question is a transaction that keeps all others from merging."""
    async with Engine(database_url, [example.pipeline()]) as engine:
        engine.store.intake.append("example", [thing(f"{number}") for number in range(10 + 10 * own)])
        neighbor = engine.store.intake.merge_ahead("example", limit=10)[1]
        assert neighbor is not None
        intake = Counted(engine.app.database, engine.app.pipelines)
        with ThreadPoolExecutor(1) as threads:
            waiting = merger(engine, threads, intake=intake, batch=10, lease_seconds=900)
            stop = asyncio.Event()
            running = asyncio.create_task(waiting.run(stop))
            await until(lambda: len(aheads(engine)) == 1 + own)
            turns = intake.turns
            await until(lambda: intake.turns > turns + 50)
            assert intake.asked <= 3
            stop.set()
            await running
            settlements = [engine.app.runner.run_ahead(lease, LEASE_SECONDS) for lease in neighbor.leases]
            birth = intake.prepare(neighbor, [s for s in settlements if s is not None])
            assert intake.merge_ahead("example", neighbor, birth, limit=0)[0].ran == 10
            await waiting.give_back()

        assert engine.states("thing") == {"shown": 10 + 10 * own}
        assert aheads(engine) == []


def aheads(engine: Engine) -> list[Any]:
    with engine.app.database.reading() as tx:
        return tx.sql("SELECT through FROM aheads ORDER BY through", {})


async def test_what_is_not_run_in_time_is_born_unrun(database_url: str) -> None:
    """A slow batch does not outlast its right; the rest of it is claimed as usual."""
    now = [0.0]

    def dawdle(work: Work) -> Outcome:
        if work.key == "slow":
            now[0] += 900
        return Advance()

    workflow = Workflow(
        "thing", "found", ("found", "done"), (Transition("dawdle", "found", "done", dawdle),), frozenset({"done"})
    )
    async with Engine(database_url, [Pipeline("example", "Example", "", {"thing": workflow})]) as engine:
        engine.store.intake.append("example", [thing("slow"), *(thing(f"{n}") for n in range(20))])

        with ThreadPoolExecutor(1) as threads:
            merging = merger(engine, threads, batch=500, lease_seconds=900, monotonic=lambda: now[0])
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


def test_the_example_runs_ahead_only_where_its_steps_are_fused() -> None:
    assert example.workflow().runs_ahead
    assert not example.workflow(fuse=False).runs_ahead
