"""Short leases: renewed while their holder lives, lost when it dies, and not counted where only the store was away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.contract.test_worker import Gate, a_worker, job, record, waiting_pipeline
from tests.support import example
from tests.support.engine import Engine
from tests.support.example import thing
from tests.support.store import Ground
from tests.support.waiting import until

from tidings.model.contracts import Kit
from tidings.model.errors import StoreUnavailable
from tidings.model.item import Finding, Item, Lease, fingerprint
from tidings.model.outcome import Advance, Outcome
from tidings.model.workflow import Work
from tidings.process.sweeper import Sweeper

OpenGround = Callable[..., Ground]
GRANT_SECONDS = 6.0


class Cable:
    """The real executor behind a cable that a test can pull."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.is_cut = False
        self.writes: list[str] = []
        self.failed: set[str] = set()

    async def write(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        name = getattr(call, "__name__", "?")
        self.writes.append(name.removeprefix("_").removesuffix("_in_time"))
        self._refuse(self.writes[-1])
        return await self.real.write(call, *args, **kwargs)

    async def read(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._refuse("read")
        return await self.real.read(call, *args, **kwargs)

    def _refuse(self, name: str) -> None:
        if self.is_cut:
            self.failed.add(name)
            raise StoreUnavailable("the cable is pulled")


class Stall(Cable):
    """An executor whose store can let one call wait for a minute."""

    def __init__(self, engine: Engine, now: list[float]) -> None:
        super().__init__(engine.app.executor)
        self.engine, self.now, self.stalls = engine, now, False

    async def write(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.stalls:
            self.now[0] += 61
            self.engine.advance_clock(seconds=61)
            self.stalls = False
        return await super().write(call, *args, **kwargs)


def a_sweeper(engine: Engine, executor: Any, **changes: Any) -> Sweeper:
    app = engine.app
    values: dict[str, Any] = {
        "items": app.store.items,
        "executor": executor,
        "tidy": dict,
        "waker": app.waker,
        "sweep_seconds": 0.02,
        "grant_seconds": GRANT_SECONDS,
    }
    return Sweeper(**values | changes)


async def looks(cable: Cable) -> None:
    """Wait until a sweeper has looked, and whatever came of it is done."""
    seen = cable.writes.count("sweep")
    await until(lambda: cable.writes.count("sweep") > seen + 3)


def the_job(engine: Engine) -> Item:
    item = engine.store.items.find("jobs", "job", "a")
    assert item is not None
    return item


def lose(ground: Ground, lease: Lease) -> None:
    """Let a lease run out and be swept."""
    ground.advance(seconds=61)
    assert ground.store.items.sweep().expired == 1
    assert ground.item(lease.key, lease.kind).lease_until is None


# While the holder lives


async def test_no_effect_may_start_after_nine_tenths_of_the_last_grant(database_url: str) -> None:
    deadlines: list[float] = []
    started: list[float] = []
    gate = Gate()

    async def watch(work: Work, kit: Kit) -> Outcome:
        started.append(asyncio.get_running_loop().time())
        deadlines.append(work.deadline)
        waiting = asyncio.create_task(gate.wait(work, kit))
        while not waiting.done():
            if work.deadline > deadlines[-1]:
                deadlines.append(work.deadline)
            await asyncio.sleep(0.01)
        return await waiting

    async with Engine(database_url, [waiting_pipeline(watch)], grant_seconds=0.9) as engine:
        record(engine, job("a"))
        working = asyncio.create_task(engine.work_until_idle())
        await until(lambda: len(deadlines) > 2)
        gate.open.set()
        await working

    assert deadlines[0] <= started[0] + 0.9 * 0.9, "the grant is older than the attempt"
    assert deadlines[0] < deadlines[1] < deadlines[2]


async def test_a_batch_that_is_settled_soon_is_never_renewed(database_url: str) -> None:
    async with Engine(database_url, [example.pipeline(fuse=False)]) as engine:
        cable = Cable(engine.app.executor)
        record(engine, *(thing(str(number)) for number in range(1_000)))
        await a_worker(engine, executor=cable).until_idle()

        assert engine.states("thing") == {"shown": 1_000}
        assert "renew" not in cable.writes


async def test_an_attempt_whose_lease_is_lost_ends(database_url: str) -> None:
    """A zombie's work is in vain, and what it would do next has been begun by another."""
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)], grant_seconds=1.2) as engine:
        record(engine, job("a"))
        working = asyncio.create_task(engine.work_until_idle(wait_for_due_seconds=0))
        await until(lambda: gate.inside == ["a"])
        engine.store.operations.transition(engine.item("job", "a").item.id, "fail", actor="ada", reason="stop it")
        async with asyncio.timeout(15):
            await working

        assert gate.inside == []
        assert [row.kind for row in engine.item("job", "a").life] == ["born", "manual"]


async def test_an_attempt_may_take_as_long_as_declared_and_no_longer(database_url: str) -> None:
    gate = Gate()
    pipeline = waiting_pipeline(gate.wait, base_seconds=3600, cap_seconds=3600)
    async with Engine(database_url, [pipeline], lease_seconds=0.5) as engine:
        record(engine, job("a"))
        async with asyncio.timeout(15):
            await engine.work_until_idle()

        item = the_job(engine)
        assert (item.state, item.attempts, item.lost_leases) == ("found", 1, 0)
        assert "took longer than 0.5 s" in (item.last_error or "")
        assert gate.inside == []


# While the store is away


async def test_what_was_held_while_the_store_was_away_is_settled_and_not_lost(database_url: str) -> None:
    """The outage outlasts the leases. Sweepers of other processes were cut off too, and hold back at first."""
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)], grant_seconds=GRANT_SECONDS) as engine:
        cable = Cable(engine.app.executor)
        record(engine, job("a"))
        stop = asyncio.Event()
        working = asyncio.create_task(a_worker(engine, executor=cable, grant_seconds=GRANT_SECONDS).run(stop))
        sweeping = asyncio.create_task(a_sweeper(engine, cable).run(stop))
        await until(lambda: gate.inside == ["a"])
        cable.is_cut = True
        gate.open.set()
        await until(lambda: {"settle", "sweep"} <= cable.failed)
        engine.advance_clock(seconds=GRANT_SECONDS + 1)
        cable.is_cut = False
        await until(lambda: the_job(engine).lease_until is None)
        stop.set()
        await asyncio.gather(working, sweeping)

        assert (the_job(engine).state, the_job(engine).lost_leases) == ("fetched", 0)
        assert [row.kind for row in engine.item("job", "a").life] == ["born", "attempt"], "nothing was done twice"


async def test_a_long_attempt_outlives_an_outage(database_url: str) -> None:
    gate = Gate()
    async with Engine(database_url, [waiting_pipeline(gate.wait)], grant_seconds=GRANT_SECONDS) as engine:
        cable = Cable(engine.app.executor)
        record(engine, job("a"))
        stop = asyncio.Event()
        working = asyncio.create_task(a_worker(engine, executor=cable, grant_seconds=GRANT_SECONDS).run(stop))
        await until(lambda: gate.inside == ["a"])
        cable.is_cut = True
        await until(lambda: "renew" in cable.failed)
        engine.advance_clock(seconds=GRANT_SECONDS + 1)
        cable.is_cut = False
        await until(lambda: (the_job(engine).lease_until or 0) > engine.now_ms())
        gate.open.set()
        await until(lambda: engine.states("job") == {"fetched": 1})
        stop.set()
        await working

        assert [row.kind for row in engine.item("job", "a").life] == ["born", "attempt"]


async def test_after_an_outage_the_dead_are_swept_once_the_living_had_time(database_url: str) -> None:
    async with Engine(database_url, [waiting_pipeline(Gate().wait)]) as engine:
        cable = Cable(engine.app.executor)
        record(engine, job("a"))
        engine.store.intake.merge("jobs")
        (lease,) = engine.store.items.claim("jobs", "fetch", 1, "dead", 60)
        now, stop = [0.0], asyncio.Event()
        sweeping = asyncio.create_task(a_sweeper(engine, cable, monotonic=lambda: now[0]).run(stop))
        await looks(cable)
        cable.is_cut = True
        await until(lambda: "sweep" in cable.failed)
        engine.advance_clock(seconds=61)
        cable.is_cut = False
        await looks(cable)
        assert the_job(engine).lease_token == lease.token, "taken while its holder may come back"

        now[0] += GRANT_SECONDS / 2
        await until(lambda: the_job(engine).lost_leases == 1)
        stop.set()
        await sweeping


async def test_a_store_that_only_stalled_was_away_too(database_url: str) -> None:
    """The call comes back without an error, a minute late."""
    async with Engine(database_url, [waiting_pipeline(Gate().wait)]) as engine:
        now = [0.0]
        cable = Stall(engine, now)
        record(engine, job("a"))
        engine.store.intake.merge("jobs")
        (lease,) = engine.store.items.claim("jobs", "fetch", 1, "frozen", 60)
        stop = asyncio.Event()
        sweeping = asyncio.create_task(a_sweeper(engine, cable, monotonic=lambda: now[0]).run(stop))
        await looks(cable)
        cable.stalls = True
        await until(lambda: not cable.stalls)
        await looks(cable)
        token = the_job(engine).lease_token
        stop.set()
        await sweeping

        assert token == lease.token, "taken while its holder may come back"


# Taking up again


def test_a_lease_that_ran_out_and_was_not_taken_can_be_taken_up_again(ground: Ground) -> None:
    ground.record(thing("a"))
    lease = ground.claim_one(seconds=60)
    ground.advance(seconds=61)
    assert ground.store.items.renew([(lease.id, lease.token)], 60) == set()

    assert ground.store.items.regain([(lease.id, lease.token)], 60) == {lease.id}
    assert ground.store.items.sweep().expired == 0
    assert ground.settle(lease).done == {lease.id}


def test_a_lease_that_was_closed_cannot_be_taken_up_again(ground: Ground) -> None:
    ground.record(thing("a"), thing("b"))
    settled, released = ground.claim(2, seconds=60)
    ground.settle(settled)
    ground.store.items.release([(released.id, released.token)])
    before = ground.dump()

    assert ground.store.items.regain([(settled.id, settled.token), (released.id, released.token)], 60) == set()
    assert ground.dump() == before


def test_losses_that_their_holder_survived_make_no_poison(ground: Ground) -> None:
    """One worker's connection is cut, again and again; another sweeps what it held, and claims it at once or later."""
    ground.record(thing("a"))
    for number in range(6):
        lease = ground.claim_one(seconds=60)
        lose(ground, lease)
        heir = ground.claim_one(seconds=60) if number % 2 else None
        assert ground.store.items.regain([(lease.id, lease.token)], 60) == set()
        assert ground.item("a").lost_leases == 0
        if heir is not None:
            ground.store.items.release([(heir.id, heir.token)])

    ground.work()
    assert ground.item("a").state == "shown"


def test_a_loss_is_taken_back_once_and_only_by_its_holder(ground: Ground) -> None:
    ground.record(thing("a"))
    first = ground.claim_one(seconds=60)
    lose(ground, first)
    second = ground.claim_one(seconds=60)
    lose(ground, second)
    third = ground.claim_one(seconds=60)
    assert ground.item("a").lost_leases == 2

    ground.store.items.regain([(first.id, first.token)], 60)
    assert ground.item("a").lost_leases == 2, "it was lost by another since"
    ground.store.items.regain([(second.id, second.token)], 60)
    assert ground.item("a").lost_leases == 1
    ground.settle(third)
    ground.store.items.regain([(third.id, third.token)], 60)
    assert ground.item("a").lost_leases == 0


def test_a_delivery_whose_lease_was_lost_may_have_been_sent_though_its_holder_lives(open_ground: OpenGround) -> None:
    async def send(work: Work, kit: Kit) -> Outcome:
        return Advance()

    from tidings.publish.deliveries import with_deliveries

    ground = open_ground(with_deliveries(example.pipeline(announce={"thing": lambda _: ()}), send))
    body = b'{"id":"1","channel":"news","notice":{"title":"t","text":"x"},"queued_at":0}'
    ground.record(Finding("example", "delivery", "news/1", fingerprint("1"), body))
    lease = ground.claim_one(lane="notify", seconds=60)
    lose(ground, lease)

    ground.store.items.regain([(lease.id, lease.token)], 60)
    assert ground.item("news/1", "delivery").lost_leases == 1
