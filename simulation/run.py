"""One seed: faults for a while, then calm, then everything must be at rest."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from simulation.clock import VirtualClock
from simulation.database import FaultyDatabase
from simulation.faults import PLANNED, Faults
from simulation.history import Trace
from simulation.loop import OWNER, VirtualLoop
from simulation.oracle import readers
from simulation.oracle.knowledge import Violation
from simulation.oracle.oracle import Oracle
from simulation.oracle.snapshot import ItemRow
from simulation.people import People
from simulation.pipelines import COPIES, PAGES, copies, pages
from simulation.plan import PROCESSES, SECONDS, Event, Plan, draw
from simulation.process import LEASE_SECONDS, Ground, Process
from simulation.world import ListSource, World
from tidings.model.pipeline import Pipeline
from tidings.model.publication import DELIVERY
from tidings.pipelines.hacker_news.cards import ITEMS, present
from tidings.pipelines.hacker_news.workflow import workflow as hacker_news
from tidings.store.db.database import Database
from tidings.store.upkeep.rebuild import Rebuilder

CALM_ROUNDS_MAX = 800
ROUND_SECONDS = 0.3
DAY_SECONDS = 86_400.0
Connect = Callable[[VirtualClock], Database]


@dataclass
class Result:
    """What became of a seed."""

    seed: int
    digest: str = ""
    violations: list[Violation] = field(default_factory=list)
    last_events: list[str] = field(default_factory=list)
    commits: int = 0
    events: int = 0
    acknowledged: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    plan: Plan | None = None

    def without_events(self) -> Result:
        """Leave out what only a failure needs."""
        return replace(self, last_events=[], plan=None)


def run(seed: int, connect: Connect) -> Result:
    """Run one seed to its end, or to the first broken invariant."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_run(seed, connect, loop))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _run(seed: int, connect: Connect, loop: VirtualLoop) -> Result:
    loop.set_exception_handler(lambda _loop, _context: None)
    simulation = Simulation(seed, connect, loop)
    try:
        await simulation.run()
    except Exception as error:  # noqa: BLE001  # whatever ends a run is its result
        simulation.oracle.known.break_rule("run", f"{type(error).__name__}: {error}")
    finally:
        await simulation.close()
    return simulation.result()


class Simulation:
    """All parts of one seed."""

    def __init__(self, seed: int, connect: Connect, loop: VirtualLoop) -> None:
        self._seed = seed
        self._loop = loop
        root = random.Random(seed)
        self._plan = draw(random.Random(root.getrandbits(64)))
        self._faults = Faults(random.Random(root.getrandbits(64)), self._plan.kinds, self._plan.rate)
        self._rng = random.Random(root.getrandbits(64))
        self._clock = VirtualClock(loop)
        self._trace = Trace(loop)
        self._world = World(random.Random(root.getrandbits(64)), self._trace, self._plan.trouble)
        self._world.on_send = self._sends
        self._real = connect(self._clock)
        database = FaultyDatabase(self._real, self._faults, before=self._set_clock, on_commit=self._committed, die=_die)
        self._sources, pipelines = self._declare()
        self._ground = Ground(
            database, pipelines, self._world, self._faults, self._clock, self._trace, self._rng, self._claimed
        )
        self._processes: dict[str, Process] = {}
        self._desk = Process("desk", self._ground)
        workflows = {(p.name, kind): w for p in self._desk.pipelines.values() for kind, w in p.workflows.items()}
        self.oracle: Oracle = Oracle(
            self._real, self._clock, self._world, workflows, list(self._sources.values()), LEASE_SECONDS
        )
        self._people = People(
            self._desk, self.oracle, self._clock, self._trace, self._sources, self._rng, is_real=self._plan.is_real
        )
        self._keepers: list[asyncio.Task[None]] = []
        self._changes = self._real.changes()

    def _declare(self) -> tuple[dict[str, ListSource], list[Pipeline]]:
        notes = "hacker_news" if self._plan.is_real else COPIES
        sources = {name: ListSource(f"{name}.list", self._world) for name in (notes, PAGES)}
        first = _real_pipeline(sources[notes]) if self._plan.is_real else copies(sources[notes])
        return sources, [first, pages(self._world, sources[PAGES])]

    def _set_clock(self) -> None:
        """Let a server's clock follow ours; it goes on by itself for the moment that a call takes."""
        if self._real.dialect == "postgres":
            self._real.move_clock(self._clock.now_ms() - time.time_ns() // 1_000_000)

    def _committed(self) -> None:
        if self._real.dialect == "sqlite":
            changes = self._real.changes()
            if changes == self._changes:
                return  # nothing was written
            self._changes = changes
        self.oracle.after_commit()

    def _claimed(self, limit: int, ids: Sequence[int]) -> None:
        self.oracle.claimed(limit, ids)

    def _sends(self, delivery: str) -> None:
        owner = OWNER.get()
        self.oracle.sending(delivery, owner.owner if isinstance(owner, Process) else "")

    async def run(self) -> None:
        """Faults, calm, rest."""
        OWNER.set(self._desk)
        self._keepers = [asyncio.create_task(self._keep(name)) for name in PROCESSES]
        await self._unless_broken(self._storm())
        await self._unless_broken(self._calm())

    async def _unless_broken(self, phase: Coroutine[Any, Any, None]) -> None:
        """Run a phase to its end, or to the first broken invariant."""
        broken = asyncio.create_task(self.oracle.broken.wait())
        running = asyncio.create_task(phase)
        await asyncio.wait({broken, running}, return_when=asyncio.FIRST_COMPLETED)
        broken.cancel()
        if running.done():
            running.result()
        else:
            running.cancel()

    async def _storm(self) -> None:
        happening = [asyncio.create_task(self._happen(event)) for event in self._plan.events]
        await asyncio.sleep(SECONDS)
        await asyncio.gather(*happening)

    async def _happen(self, event: Event) -> None:
        await asyncio.sleep(event.at)
        if event.what in ("upload", "list"):
            await self._people.offer(event.what, *event.details)
        elif event.what in PLANNED:
            await self._break(event.what, *event.details)
        else:
            await self._people.operate(event.what, *event.details)

    async def _break(self, kind: str, name: str, seconds: float) -> None:
        """Let a planned fault happen."""
        self._faults.count(kind)
        self._trace.add("fault", f"{kind} {name} {seconds:.1f}")
        process = self._processes.get(name)
        if kind == "jump":
            self._jump(seconds)
        elif kind == "full":
            self._ground.database.is_full = True
            await asyncio.sleep(seconds)
            self._ground.database.is_full = False
        elif process is None or process.is_dead:
            return
        elif kind == "crash":
            process.die()
        elif kind == "restart":
            await process.stop()
        elif kind == "stall":
            process.stalled_until = self._loop.time() + seconds
        elif kind == "cut":
            process.cut_until = self._loop.time() + seconds

    def _jump(self, seconds: float) -> None:
        self._clock.jump(seconds)
        self.oracle.jumped()
        for process in self._processes.values():
            process.waker.wake_all()

    async def _keep(self, name: str) -> None:
        """Start a process again whenever it has ended."""
        while True:
            process = self._processes[name] = Process(name, self._ground)
            self._trace.add(name, f"starts as {process.owner}")
            process.start()
            await process.is_over.wait()
            await process.end()
            await asyncio.sleep(self._rng.uniform(0.2, 12.0) if self._faults.are_on else 0.1)

    async def _calm(self) -> None:
        """Faults end. Move the clock from one due time to the next until nothing is left to do; then look closely."""
        self._trace.add("calm", "faults end")
        self._faults.are_on = self._world.is_troubled = False
        for process in self._processes.values():
            process.stalled_until = process.cut_until = 0.0
        self._jump(self._set_back_seconds())
        await self._people.resume_all()
        await self._settle_down()
        await self._people.revive_all()
        await self._settle_down()
        self.oracle.check_rest()
        self._check_counts()
        # A page that was worked on while the list had no room for it is taken back or retired by the next tidying.
        await self._people.tidy()
        rebuilder = Rebuilder(self._real, self._desk.pipelines)
        readers.check_rebuild(self.oracle.known, self._real, rebuilder, self._clock.now_ms())
        for days in (13, 40):
            self._jump(days * DAY_SECONDS)
            await self._people.tidy()

    def _check_counts(self) -> None:
        views = self._desk.store.status_views.status().pipelines
        counted = {
            (name, kind, state): count
            for name, view in views.items()
            for kind, states in view.kinds.items()
            for state, count in states.items()
            if count
        }
        self.oracle.check_counts(counted)

    def _set_back_seconds(self) -> float:
        """Return how far rights reach beyond their length: where the clock was set back, it has to come forward."""
        snapshot = self.oracle.now
        rights = [item.lease_until or 0 for item in snapshot.items.values()] + list(snapshot.reservations.values())
        rights += [schedule.lease_until or 0 for schedule in snapshot.schedules.values()]
        beyond = max(rights, default=0) / 1000 - self._clock.now_ms() / 1000
        return beyond if beyond > LEASE_SECONDS else 0.0

    async def _settle_down(self) -> None:
        for number in range(CALM_ROUNDS_MAX):
            await asyncio.sleep(ROUND_SECONDS)
            if number % 40 == 39:
                await self._people.resume_all()  # a pause may have been on its way when the faults ended
            wait_ms = self._next_ms()
            if wait_ms is None:
                return
            if wait_ms > 500:
                self._jump(wait_ms / 1000 + 0.001)
        self.oracle.known.break_rule("C7", f"not at rest after {CALM_ROUNDS_MAX} rounds: {self._restless()[:3]}")

    def _next_ms(self) -> int | None:
        """Return how long until something should happen by itself, or None when all is at rest."""
        now, snapshot = self._clock.now_ms(), self.oracle.now
        restless = self._restless()
        alive = {process.owner for process in self._processes.values()}
        holders = [item.lease_owner for item in restless] + [turn.lease_owner for turn in snapshot.schedules.values()]
        if any(holder in alive for holder in holders):
            return 0  # someone is at it
        # Deliveries go in the order they were born: the younger ones look again and again until the first is gone.
        first = min((item.id for item in restless if item.kind == DELIVERY), default=0)
        moving = [item for item in restless if item.kind != DELIVERY or item.id == first]
        times = [item.lease_until or item.due_at or 0 for item in moving]
        # A worker that reserved a stretch of the log and died holds the log until its reservation is over: for as long
        # as the clock was set back.
        times += [snapshot.reservations.get(row.pipeline, now) for row in snapshot.unmerged]
        for source in self._sources.values():
            if self.oracle.known.passed.get(source.name, 0) < len(source.entries):
                schedule = snapshot.schedules[source.name]
                times.append(max(schedule.next_at, schedule.lease_until or 0))
        return max(0, min(times) - now) if times else None

    def _restless(self) -> list[ItemRow]:
        items = self.oracle.now.items.values()
        return [item for item in items if item.standing == "open" or item.lease_until or item.waiting_revision]

    async def close(self) -> None:
        """End every task and close the database."""
        for keeper in self._keepers:
            keeper.cancel()
        for process in self._processes.values():
            process.die()
            await process.end()
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        await asyncio.sleep(0)
        self._real.close()

    def result(self) -> Result:
        """Tell what happened."""
        return Result(
            self._seed,
            self._trace.digest,
            list(self.oracle.violations),
            list(self._trace.last),
            self.oracle.commits,
            self._trace.count,
            self.oracle.known.acknowledged,
            dict(sorted(self._faults.counts.items())),
            self._plan,
        )


def _die() -> bool:
    owner = OWNER.get()
    return isinstance(owner, Process) and owner.die()


def _real_pipeline(source: ListSource) -> Pipeline:
    """The life of Hacker News items as it ships, fed by a list of ours."""
    return Pipeline(
        name="hacker_news",
        title="Hacker News",
        about="The real workflow.",
        workflows={"item": hacker_news()},
        sources=(source,),
        collections=(ITEMS,),
        presenters={"item": present},
    )
