"""The worker on a real store: fusing, failures that stay their own, outages, heartbeats and draining."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.support import example
from tests.support.engine import Engine
from tests.support.example import Thing, thing
from tests.support.own_sql import own_sql
from tests.support.store import Ground
from tests.support.waiting import until

from tidings.model.backoff import RetryPolicy
from tidings.model.contracts import Kit
from tidings.model.errors import Misconfigured, Permanent, SlowDown, StoreUnavailable, Transient
from tidings.model.item import Finding, fingerprint
from tidings.model.outcome import Advance, Outcome, Postpone
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Presentation
from tidings.model.workflow import ANY, Transition, Work, Workflow
from tidings.process.lanes import Lane
from tidings.process.runner import Runner
from tidings.process.waker import Waker
from tidings.process.worker import Worker
from tidings.watch.metrics import Metrics


class FaultyExecutor:
    """The real executor, with faults a test asks for in front of or behind its writes."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.fail_before: list[tuple[str, Exception]] = []
        self.fail_after: list[tuple[str, Exception]] = []
        self.writes: list[str] = []

    async def write(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        name = getattr(call, "__name__", "?")
        self.writes.append(name)
        self._raise(self.fail_before, name)
        answer = await self.real.write(call, *args, **kwargs)
        self._raise(self.fail_after, name)
        return answer

    async def read(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self.real.read(call, *args, **kwargs)

    @staticmethod
    def _raise(faults: list[tuple[str, Exception]], name: str) -> None:
        for number, (on, error) in enumerate(faults):
            if on == name:
                del faults[number]
                raise error


def a_worker(engine: Engine, **changes: Any) -> Worker:
    app = engine.app
    values: dict[str, Any] = {
        "items": app.store.items,
        "log": app.store.intake,
        "runner": app.runner,
        "kit": app.kit,
        "executor": app.executor,
        "pipelines": app.pipelines,
        "owner": app.owner,
        "waker": app.waker,
        "lanes": engine.wiring.lanes,
        "lease_seconds": engine.wiring.lease_seconds,
        "paused": app.store.pauses.reasons,
    }
    return Worker(**values | changes)


def record(engine: Engine, *findings: Finding) -> None:
    engine.store.intake.append(findings[0].pipeline, findings)


class Gate:
    """A waiting processor that tests open: it tells how many are inside."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.inside: list[str] = []
        self.most = 0

    async def wait(self, work: Work, kit: Kit) -> Outcome:
        self.inside.append(work.key)
        self.most = max(self.most, len(self.inside))
        try:
            await self.open.wait()
        finally:
            self.inside.remove(work.key)
        return Advance(note="waited")


def waiting_pipeline(processor: Any, name: str = "jobs", **retry: Any) -> Pipeline:
    workflow = Workflow(
        kind="job",
        start="found",
        states=("found", "fetched", "failed"),
        terminal=frozenset({"fetched"}),
        failures=frozenset({"failed"}),
        transitions=(
            Transition("fetch", "found", "fetched", processor=processor, lane="fetch", retry=RetryPolicy(**retry)),
            Transition("fail", ANY, "failed", trigger="manual"),
            Transition("retry", "failed", "found", trigger="manual"),
        ),
    )
    return Pipeline(name, "Jobs", "Things that wait.", {"job": workflow})


def job(key: str, pipeline: str = "jobs") -> Finding:
    return Finding(pipeline, "job", key, fingerprint(key), b'{"title":"a job"}')


# Fusing


async def test_a_run_of_pure_transitions_is_one_attempt_and_one_settle(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline()]) as engine:
        record(engine, thing("a"))
        await engine.work_until_idle()

        born, attempt = engine.item("thing", "a").life
        assert [step.transition for step in attempt.steps] == ["read", "check", "show"]
        assert (born.kind, attempt.from_state, attempt.to_state) == ("born", "found", "shown")
        assert attempt.steps[1].criterion == "is_wanted"


async def test_a_workflow_may_ask_for_one_settle_a_step(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline(fuse=False)]) as engine:
        record(engine, thing("a"))
        await engine.work_until_idle()

        life = engine.item("thing", "a").life
        assert [row.to_state for row in life] == ["found", "read", "checked", "shown"]
        assert [len(row.steps) for row in life] == [0, 1, 1, 1]


async def test_a_failing_step_settles_what_came_before_it(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline()]) as engine:
        record(engine, thing("a", fate="fail"))
        await engine.work_until_idle()

        view = engine.item("thing", "a")
        assert (view.item.state, view.item.standing, view.item.attempts) == ("read", "open", 1)
        assert view.body["seen"] == 1
        assert [(step.transition, step.note) for step in view.life[-1].steps] == [
            ("read", None),
            ("check", "raised the weather is bad"),
        ]
        assert (view.life[-1].ended, view.life[-1].error) == ("retried", "the weather is bad")

        engine.advance_clock(seconds=5)
        await engine.work_until_idle()
        assert engine.item("thing", "a").body["seen"] == 1


async def test_a_step_that_fails_while_it_publishes_leaves_nothing_of_itself(database_url: str) -> None:
    """The presenter fails on a newer revision: readers keep the old card, the body stays as before the step."""

    def stamp(work: Work) -> Outcome:
        return Advance(body=msgspec.structs.replace(work.body, seen=work.body.seen + 10))

    def present(key: str, body: Thing) -> Presentation:
        if body.text == "bad":
            raise ValueError("cannot be shown")
        return example.present(key, body)

    usual = example.workflow()
    moves = [t if t.name != "show" else Transition("show", "checked", "shown", stamp, publishes=True, retry=t.retry)
             for t in usual.transitions]  # fmt: skip
    workflow = Workflow("thing", "found", usual.states, tuple(moves), usual.terminal, usual.failures, Thing)
    declared = Pipeline(
        "example", "Example", "", {"thing": workflow}, collections=example.pipeline().collections,
        presenters={"thing": present},
    )  # fmt: skip
    async with Engine(database_url, [declared]) as engine:
        record(engine, thing("a", "good"))
        await engine.work_until_idle()
        record(engine, thing("a", "bad"))
        await engine.work_through(rounds=10)

        view = engine.item("thing", "a")
        assert (view.item.state, view.item.standing, view.item.cause) == (
            "checked",
            "dead",
            "ValueError: cannot be shown",
        )
        assert (view.accepted_revision, view.item.revision) == (1, 2)
        assert view.body["seen"] == 1
        assert engine.card("things", "a") == {"id": "a", "text": "good"}


# One item's trouble is its own


async def test_no_items_surprise_changes_anothers_outcome(database_url: str) -> None:
    def check(work: Work) -> Outcome:
        if work.body.fate == "unwritable body":
            return Advance(body=msgspec.structs.replace(work.body, text="\ud800 alone"))
        if work.body.fate == "no outcome":
            return None  # type: ignore[return-value]  # what a careless processor may do
        if work.body.fate == "odd error":
            raise Transient("bytes \0 from \udcff a page")
        return example.check(work)

    def related(work: Work) -> list[str]:
        if work.body.fate == "bad prefetch":
            raise KeyError("no such field")
        return ["thing:broken", "thing:fine 0", "nothing:here"]

    policy = RetryPolicy(attempts=2, base_seconds=1, jitter=0)
    workflow = Workflow(
        kind="thing",
        start="read",
        states=("read", "shown"),
        terminal=frozenset({"shown"}),
        body=Thing,
        transitions=(Transition("check", "read", "shown", processor=check, prefetch=related, retry=policy),),
    )
    declared = Pipeline("example", "Example", "", {"thing": workflow})
    async with Engine(database_url, [declared]) as engine:
        odd = ["unwritable body", "no outcome", "odd error", "bad prefetch", "break", "fail"]
        broken = Finding("example", "thing", "broken", "f", b'{"id":17}')
        record(engine, *(thing(fate, fate=fate) for fate in odd), broken, *(thing(f"fine {n}") for n in range(5)))

        await engine.work_through(rounds=10)

        fine = [row for row in engine.items("thing") if row.key.startswith("fine")]
        assert [(row.state, row.standing, row.attempts) for row in fine] == [("shown", "done", 0)] * 5
        causes = {row.key: row.cause or "" for row in engine.items("thing") if row.standing == "dead"}
        assert sorted(causes) == sorted([*odd, "broken"])
        assert causes["broken"] == "unreadable body of thing"
        assert "surrogates" in causes["unwritable body"]
        assert "KeyError" in causes["bad prefetch"]
        assert causes["odd error"].startswith("bytes")
        lost = engine.store.database
        with lost.reading() as tx:
            assert own_sql(tx, "SELECT max(lost_leases) FROM items") == [(0,)]


async def test_an_outcome_the_store_refuses_buries_only_its_item(database_url: str) -> None:
    def present(key: str, body: Thing) -> Presentation:
        return example.present("the same" if key.startswith("twin") else key, body)

    declared = example.pipeline()
    object.__setattr__(declared, "presenters", {"thing": present})
    async with Engine(database_url, [declared]) as engine:
        record(engine, thing("twin 1"), *(thing(str(n)) for n in range(9)), thing("twin 2"))
        await engine.work_until_idle()

        standing = {row.key: row.standing for row in engine.items("thing")}
        assert sorted(standing.values()) == ["dead"] + ["done"] * 10
        (dead,) = [row for row in engine.items("thing") if row.standing == "dead"]
        assert dead.key.startswith("twin")
        assert dead.cause == "the outcome could not be written"
        assert dead.state == "found"


async def test_an_unknown_kind_is_parked_until_somebody_knows_it(database_url: str) -> None:
    """During a deployment an older worker meets a kind that a newer one merged."""
    newer = Pipeline("example", "Example", "", {"thing": example.workflow(), "novelty": novelty()})
    async with Engine(database_url, [newer]) as engine:
        record(engine, Finding("example", "novelty", "n", "f", b"{}"))
        engine.store.intake.merge("example")
    async with Engine(database_url, [example.pipeline()]) as older:
        await older.work_until_idle()
        view = older.item("novelty", "n")
        assert (view.item.standing, view.item.state) == ("parked", "found")
        assert "unknown kind" in (view.item.cause or "")
        assert view.item.attempts == 0
        offset = older.offset_ms
    async with Engine(database_url, [newer]) as engine:
        engine.advance_clock(seconds=offset / 1000 + 3600)
        await engine.work_until_idle()
        assert engine.item("novelty", "n").item.state == "old"


def novelty() -> Workflow:
    return Workflow("novelty", "found", ("found", "old"), (Transition("age", "found", "old"),), frozenset({"old"}))


# Endings


async def test_waiting_costs_no_attempt(database_url: str) -> None:
    def hesitate(work: Work) -> Outcome:
        if work.key == "slow down":
            raise SlowDown("not so fast", retry_after_seconds=30)
        return Postpone(work.now_ms + 30_000, "later")

    workflow = Workflow(
        "thing", "found", ("found", "done"), (Transition("go", "found", "done", hesitate),), frozenset({"done"}),
        body=Thing,
    )  # fmt: skip
    async with Engine(database_url, [Pipeline("example", "Example", "", {"thing": workflow})]) as engine:
        record(engine, thing("slow down"), thing("postpone"))
        for _ in range(8):
            await engine.work_until_idle()
            engine.advance_clock(seconds=31)

        rows = engine.items("thing")
        assert [(row.standing, row.attempts) for row in rows] == [("open", 0)] * 2
        assert {row.last_error for row in rows} == {"not so fast", "later"}
        assert all(len(engine.item("thing", row.key).life) == 9 for row in rows)


@pytest.mark.parametrize("failure", [Transient, SlowDown])
async def test_a_server_that_asks_for_years_is_given_an_hour(database_url: str, failure: type[Transient]) -> None:
    async def ask(work: Work, kit: Kit) -> Outcome:
        raise failure("busy", retry_after_seconds=1e9)

    async with Engine(database_url, [waiting_pipeline(ask, attempts=3)]) as engine:
        record(engine, job("a"))
        await engine.work_until_idle()

        due_at = engine.item("job", "a").item.due_at or 0
        assert 3_590_000 <= due_at - engine.now_ms() <= 3_600_000


async def test_exhausted_tries_end_as_declared(database_url: str) -> None:
    def fall(work: Work) -> Outcome:
        kinds = {"permanent": Permanent("hopeless", cause="gone"), "misconfigured": Misconfigured("no key is set")}
        raise kinds.get(work.key, Transient("bad luck"))

    def workflow(kind: str, ending: str) -> Workflow:
        policy = RetryPolicy(attempts=2, base_seconds=1, jitter=0, exhausted=ending, park_seconds=7200)
        return Workflow(
            kind, "found", ("found", "done", "failed"),
            (Transition("go", "found", "done", fall, retry=policy),
             Transition("fail", "found", "failed", example.fail, trigger="manual"),
             Transition("retry", "failed", "found", trigger="manual")),
            frozenset({"done"}), frozenset({"failed"}), body=Thing,
        )  # fmt: skip

    endings = {"dead_letter": "buried", "park": "parked", "fail": "failed"}
    declared = Pipeline("example", "Example", "", {kind: workflow(kind, e) for e, kind in endings.items()})
    async with Engine(database_url, [declared]) as engine:
        payload = msgspec.json.encode(Thing("x"))
        record(engine, *(Finding("example", kind, "unlucky", "f", payload) for kind in endings.values()))
        record(engine, *(Finding("example", "buried", key, "f", payload) for key in ("permanent", "misconfigured")))
        await engine.work_until_idle()
        engine.advance_clock(seconds=2)
        await engine.work_until_idle()

        ends = {(r.kind, r.key): (r.state, r.standing, r.cause) for r in engine.items()}
        assert ends == {
            ("buried", "unlucky"): ("found", "dead", "bad luck"),
            ("parked", "unlucky"): ("found", "parked", "bad luck"),
            ("failed", "unlucky"): ("failed", "dead", "bad luck"),
            ("buried", "permanent"): ("found", "dead", "gone"),
            ("buried", "misconfigured"): ("found", "parked", "no key is set"),
        }
        assert engine.item("failed", "unlucky").body["failures"] == 1
        # What is parked keeps being tried, at long intervals.
        engine.advance_clock(seconds=7300)
        await engine.work_until_idle()
        assert [row.ended for row in engine.item("parked", "unlucky").life] == ["born", "retried", "parked", "parked"]


# Lanes


async def test_a_waiting_lane_claims_only_what_it_can_start(database_url: str) -> None:
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)], lanes={"fetch": Lane(concurrency=3)}) as engine:
        record(engine, *(job(str(n)) for n in range(10)))
        working = asyncio.create_task(engine.work_until_idle())
        await until(lambda: len(gate.inside) == 3)
        leased = [row for row in engine.items("job") if row.lease_until is not None]
        assert len(leased) == 3
        gate.open.set()
        await working

        assert gate.most == 3
        assert engine.states("job") == {"fetched": 10}


async def test_a_lane_starts_no_more_a_minute_than_it_may(database_url: str) -> None:
    gate = Gate()
    gate.open.set()
    lanes = {"fetch": Lane(concurrency=8, rate_per_minute=4)}
    async with Engine(database_url, [waiting_pipeline(gate.wait)], lanes=lanes) as engine:
        record(engine, *(job(str(n)) for n in range(10)))
        stop = asyncio.Event()
        running = asyncio.create_task(a_worker(engine).run(stop))
        await until(lambda: engine.states("job").get("fetched") == 4)
        await asyncio.sleep(0.3)
        stop.set()
        await running

        assert engine.states("job") == {"fetched": 4, "found": 6}


async def test_a_paced_pure_lane_does_not_run_ahead_of_its_pace(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline()], lanes={"pure": Lane(rate_per_minute=4)}) as engine:
        engine.store.intake.append("example", [thing(str(n)) for n in range(10)])
        stop = asyncio.Event()
        running = asyncio.create_task(a_worker(engine).run(stop))
        await until(lambda: engine.states("thing") == {"shown": 4, "found": 6})
        stop.set()
        await running

        assert engine.states("thing") == {"shown": 4, "found": 6}


async def test_a_paused_pipeline_rests_and_resumes(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline()]) as engine:
        engine.store.switches.pause("pipeline:example", reason="holidays")
        record(engine, thing("a"))
        await engine.work_until_idle()
        assert engine.items() == []

        engine.store.switches.resume("pipeline:example")
        await engine.work_until_idle()
        assert engine.states("thing") == {"shown": 1}


async def test_new_work_wakes_the_worker_at_once(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline(fuse=False)]) as engine:
        stop = asyncio.Event()
        running = asyncio.create_task(a_worker(engine).run(stop))
        waits = []
        for number in range(4):
            await asyncio.sleep(0.1)
            started = time.monotonic()
            await engine.app.executor.write(engine.store.intake.append, "example", [thing(str(number))])
            await until(lambda: engine.states("thing").get("shown") == number + 1)  # noqa: B023  # awaited here
            waits.append(time.monotonic() - started)
        stop.set()
        await running

        # Polling alone would take half a second on the average for each of four hand-overs: two seconds.
        assert min(waits) < 1.0


async def test_work_that_nobody_announces_is_found_by_polling(database_url: str) -> None:
    """Another process has merged it, and its hint was lost."""
    async with Engine(database_url, [example.pipeline()]) as engine:
        stop = asyncio.Event()
        waker = Waker()
        running = asyncio.create_task(a_worker(engine, waker=waker).run(stop))
        other = Ground(database_url)
        try:
            for number in range(2):
                await asyncio.to_thread(other.record, thing(str(number)))
                # Two seconds are the promise; a busy machine gets some more.
                await until(lambda: engine.states("thing").get("shown") == number + 1, seconds=30)  # noqa: B023
        finally:
            other.close()
            stop.set()
            await running


# Leases of long attempts


async def test_a_long_attempt_keeps_its_lease(database_url: str) -> None:
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)], grant_seconds=3) as engine:
        record(engine, job("a"))
        working = asyncio.create_task(engine.work_until_idle())
        await until(lambda: gate.inside == ["a"])
        first = engine.item("job", "a").item.lease_until or 0
        await until(lambda: (engine.item("job", "a").item.lease_until or 0) > first + 500)
        assert (await engine.sweep()).expired == 0
        gate.open.set()
        await working

        view = engine.item("job", "a")
        assert view.item.state == "fetched"
        assert [row.kind for row in view.life] == ["born", "attempt"]


async def test_a_late_reply_prolongs_no_lease(database_url: str) -> None:
    """A lease runs from when it was asked for: whoever hears of it late has less of it left for side effects."""
    now = [1_000.0]
    deadlines: list[float] = []

    class Late(FaultyExecutor):
        async def write(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            answer = await super().write(call, *args, **kwargs)
            now[0] += 25.0 if call.__name__ == "claim" else 0.0
            return answer

    async def note(work: Work, kit: Kit) -> Outcome:
        deadlines.append(work.deadline)
        return Advance()

    async with Engine(database_url, [waiting_pipeline(note)]) as engine:
        record(engine, job("a"))
        runner = Runner(engine.app.pipelines, monotonic=lambda: now[0])
        worker = a_worker(
            engine, executor=Late(engine.app.executor), runner=runner, lease_seconds=30.0, monotonic=lambda: now[0]
        )
        await worker.until_idle()

    assert deadlines
    assert deadlines[0] <= 1_000.0 + 0.9 * 30.0


async def test_a_manual_transition_beats_the_attempt_under_way(database_url: str) -> None:
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)]) as engine:
        record(engine, job("a"))
        working = asyncio.create_task(engine.work_until_idle())
        await until(lambda: gate.inside == ["a"])
        engine.store.operations.transition(engine.item("job", "a").item.id, "fail", actor="ada", reason="stop it")
        gate.open.set()
        await working

        view = engine.item("job", "a")
        assert (view.item.state, view.item.standing) == ("failed", "dead")
        assert [row.kind for row in view.life] == ["born", "manual"]


# Stopping


async def test_stopping_gives_back_what_does_not_finish(database_url: str) -> None:
    """More is due than fits: the loop that waits for a free place must notice the stop too."""
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)], lanes={"fetch": Lane(concurrency=2)}) as engine:
        record(engine, *(job(str(n)) for n in range(5)))
        stop = asyncio.Event()
        running = asyncio.create_task(a_worker(engine).run(stop, grace_seconds=0.2))
        await until(lambda: len(gate.inside) == 2)
        stop.set()
        async with asyncio.timeout(60):
            await running

        rows = engine.items("job")
        assert [(row.state, row.attempts, row.lease_until) for row in rows] == [("found", 0, None)] * 5
        assert gate.inside == []


async def test_stopping_lets_attempts_finish_within_the_grace(database_url: str) -> None:
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)], lanes={"fetch": Lane(concurrency=2)}) as engine:
        record(engine, *(job(str(n)) for n in range(5)))
        stop = asyncio.Event()
        running = asyncio.create_task(a_worker(engine).run(stop, grace_seconds=10))
        await until(lambda: len(gate.inside) == 2)
        stop.set()
        await asyncio.sleep(0)
        gate.open.set()
        async with asyncio.timeout(60):
            await running

        assert engine.states("job") == {"fetched": 2, "found": 3}
        assert all(row.lease_until is None for row in engine.items("job"))


async def test_stopping_gives_back_a_pure_batch_that_hangs(database_url: str) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hang(work: Work) -> Outcome:
        inside.set()
        go_on.wait(20)
        return Advance()

    workflow = Workflow(
        "thing", "found", ("found", "done"), (Transition("go", "found", "done", hang),), frozenset({"done"})
    )
    async with Engine(database_url, [Pipeline("example", "Example", "", {"thing": workflow})]) as engine:
        record(engine, thing("a"), thing("b"))
        stop = asyncio.Event()
        running = asyncio.create_task(a_worker(engine).run(stop, grace_seconds=0.2))
        await until(inside.is_set)
        stop.set()
        async with asyncio.timeout(60):
            await running

        rows = engine.items("thing")
        assert [(row.state, row.attempts, row.lease_until) for row in rows] == [("found", 0, None)] * 2
        go_on.set()


async def test_stopping_does_not_wait_for_a_store_that_is_away(database_url: str) -> None:
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)]) as engine:
        record(engine, job("a"))
        executor = FaultyExecutor(engine.app.executor)
        stop = asyncio.Event()
        running = asyncio.create_task(a_worker(engine, executor=executor).run(stop, grace_seconds=0.5))
        await until(lambda: gate.inside == ["a"])
        away = StoreUnavailable("the database is away")
        executor.fail_before = [(name, away) for name in ("settle", "release") for _ in range(99)]
        gate.open.set()
        await until(lambda: "settle" in executor.writes)
        stop.set()
        async with asyncio.timeout(60):
            await running


async def test_stopping_gives_nothing_back_that_was_done(database_url: str) -> None:
    """The store is away for the settle and back for the release: what may have been sent is not called unused."""
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)]) as engine:
        record(engine, job("a"))
        executor = FaultyExecutor(engine.app.executor)
        stop = asyncio.Event()
        running = asyncio.create_task(a_worker(engine, executor=executor).run(stop, grace_seconds=0.5))
        await until(lambda: gate.inside == ["a"])
        executor.fail_before = [("settle", StoreUnavailable("the database is away")) for _ in range(99)]
        gate.open.set()
        await until(lambda: "settle" in executor.writes)
        stop.set()
        async with asyncio.timeout(60):
            await running

        assert [row.kind for row in engine.item("job", "a").life] == ["born"]
        assert engine.item("job", "a").item.lease_until is not None


class SilentExecutor:
    """A store that never answers: its calls end only when their caller gives up."""

    async def write(self, call: Any, *_args: Any, **_kwargs: Any) -> Any:
        raise await asyncio.get_running_loop().create_future()

    read = write


async def test_stopping_does_not_wait_for_a_store_that_never_answers(database_url: str) -> None:
    async with Engine(database_url, [waiting_pipeline(Gate().wait)]) as engine:
        stop = asyncio.Event()
        running = asyncio.create_task(a_worker(engine, executor=SilentExecutor()).run(stop, grace_seconds=0.5))
        await asyncio.sleep(0)
        stop.set()
        async with asyncio.timeout(10):
            await running


async def test_working_until_idle_ends_when_told_to_stop(database_url: str) -> None:
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)], lanes={"fetch": Lane(concurrency=2)}) as engine:
        record(engine, *(job(str(n)) for n in range(5)))
        stop = asyncio.Event()
        working = asyncio.create_task(a_worker(engine).until_idle(stop=stop))
        await until(lambda: len(gate.inside) == 2)
        stop.set()
        await asyncio.sleep(0)
        gate.open.set()
        async with asyncio.timeout(15):
            await working

        assert engine.states("job") == {"fetched": 2, "found": 3}
        assert all(row.lease_until is None for row in engine.items("job"))


# Outages


async def test_the_worker_outlives_an_outage(database_url: str) -> None:
    """Claims, merges and settles fail more often than there are places; everything is done in the end."""
    async with Engine(database_url, [example.pipeline(fuse=False)]) as engine:
        record(engine, *(thing(str(n)) for n in range(5)))
        executor = FaultyExecutor(engine.app.executor)
        away = StoreUnavailable("the database is away")
        executor.fail_before = [("claim_findings", away), *[("claim", away)] * 3, ("settle", away)]
        await a_worker(engine, executor=executor).until_idle()

        assert executor.fail_before == []
        assert engine.states("thing") == {"shown": 5}


async def test_the_loops_outlive_surprises(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline(fuse=False)]) as engine:
        record(engine, *(thing(str(n)) for n in range(5)))
        executor = FaultyExecutor(engine.app.executor)
        executor.fail_before = [("claim_findings", RuntimeError("odd")), ("claim", RuntimeError("odd"))]
        async with asyncio.timeout(60):
            await a_worker(engine, executor=executor).until_idle()

        assert executor.fail_before == []
        assert engine.states("thing") == {"shown": 5}


async def test_a_lost_reply_is_read_back_and_nothing_is_settled_twice(database_url: str) -> None:
    """The COMMIT arrived, its answer did not."""
    gate = Gate()
    gate.open.set()
    async with Engine(database_url, [example.pipeline(fuse=False), waiting_pipeline(gate.wait)]) as engine:
        record(engine, *(thing(str(n)) for n in range(5)))
        record(engine, *(job(str(n)) for n in range(5)))
        executor = FaultyExecutor(engine.app.executor)
        executor.fail_after = [("settle", StoreUnavailable("the line went dead"))] * 2
        await a_worker(engine, executor=executor).until_idle()

        assert executor.fail_after == []
        assert engine.states("thing") == {"shown": 5}
        assert engine.states("job") == {"fetched": 5}
        for row in engine.items():
            tokens = [
                line.token for line in engine.item(row.kind, row.key, row.pipeline).life if line.kind == "attempt"
            ]
            assert len(tokens) == len(set(tokens))
            assert row.attempts == 0


async def test_what_a_lost_reply_hid_is_counted_all_the_same(database_url: str) -> None:
    """At rest, counters match the journal."""
    metrics = Metrics("test")
    async with Engine(database_url, [example.pipeline(fuse=False)]) as engine:
        record(engine, *(thing(str(n)) for n in range(5)))
        executor = FaultyExecutor(engine.app.executor)
        executor.fail_after = [("settle", StoreUnavailable("the line went dead"))]
        await a_worker(engine, executor=executor, metrics=metrics).until_idle()

        assert executor.fail_after == []
        lives = [engine.item(row.kind, row.key).life for row in engine.items()]
        ended = Counter(line.ended for life in lives for line in life if line.kind == "attempt")
        counted = {
            sample.labels["outcome"]: int(sample.value)
            for family in metrics.items.collect()
            for sample in family.samples
            if sample.name.endswith("_total")
        }
        assert counted == ended == {"advanced": 15}


async def test_working_until_idle_is_not_misled_by_an_item_between_two_states(database_url: str) -> None:
    """While the store is asked for what is due, an item is leased; before its answer is here, it is due again."""
    inside, may_end = asyncio.Event(), asyncio.Event()

    async def step(work: Work, kit: Kit) -> Outcome:
        inside.set()
        await may_end.wait()
        return Advance()

    workflow = Workflow(
        "job",
        "found",
        ("found", "half", "done"),
        (
            Transition("begin", "found", "half", step, lane="fetch"),
            Transition("end", "half", "done", step, lane="fetch"),
        ),
        frozenset({"done"}),
    )

    class Between(FaultyExecutor):
        """Lets a lane look for work only in the middle of the question whether there is any."""

        def __init__(self, real: Any) -> None:
            super().__init__(real)
            self.may_look = asyncio.Event()
            self.is_over = False

        async def read(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            name = getattr(call, "__name__", "?")
            if name == "with_due":
                await self.may_look.wait()
            if name == "unmerged" and not self.is_over:
                self.may_look.set()
                await inside.wait()
                self.may_look.clear()
            answer = await super().read(call, *args, **kwargs)
            # Asked about all lanes at once; a lane that goes to sleep asks about itself.
            if name == "next_due_ms" and len(args[1]) > 1 and not self.is_over:
                assert answer is None
                self.is_over = True
                may_end.set()
                # A lane that was let look before the question was over may have taken the second step already.
                ended = ({"half": 1}, {"done": 1})
                await until(lambda: engine.states("job") in ended and worker._holder.is_empty)
                asyncio.get_running_loop().call_later(0.1, self.may_look.set)
            return answer

    async with Engine(database_url, [Pipeline("example", "Example", "", {"job": workflow})]) as engine:
        record(engine, Finding("example", "job", "a", "1", b"{}"))
        engine.store.intake.merge("example")
        worker = a_worker(engine, executor=Between(engine.app.executor))
        await worker.until_idle()

        assert engine.states("job") == {"done": 1}
