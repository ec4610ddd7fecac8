"""One simulated process: the real store, worker, poller, sweeper and sender; killed, stopped and started again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from simulation.clock import VirtualClock
from simulation.database import Died, FaultyDatabase
from simulation.executor import InlineExecutor
from simulation.faults import Faults
from simulation.history import Trace
from simulation.loop import OWNER
from simulation.pipelines import CHANNEL
from simulation.world import Room, World
from tidings.discover.poller import Poller
from tidings.model.contracts import Kit
from tidings.model.item import Appended, Finding, Lease, ref
from tidings.model.pipeline import Pipeline
from tidings.model.publication import DELIVERY, Notice, Route
from tidings.model.settlement import Merged, Settled, Swept
from tidings.model.workflow import PURE, Work
from tidings.process.lanes import Lane
from tidings.process.loops import Loop, run_loops
from tidings.process.runner import Runner
from tidings.process.sweeper import Sweeper
from tidings.process.waker import Waker
from tidings.process.worker import Worker
from tidings.publish.deliveries import deliveries_for, with_deliveries
from tidings.publish.digests import MEMBERS_MAX, GatheredDelivery
from tidings.publish.sending import Channel, Sender
from tidings.store.ledger import StoreLedger
from tidings.store.store import open_store

LEASE_SECONDS = 20.0
GRACE_SECONDS = 8.0
POLL_SECONDS = 3.0
"""Looking when there is nothing to do is what most of a seed's time would go into."""
LANES = {
    PURE: Lane(concurrency=1, batch=6),
    "fetch": Lane(concurrency=3),
    "notify": Lane(concurrency=1, in_order=True),
}


@dataclass(frozen=True)
class Ground:
    """What all processes stand on."""

    database: FaultyDatabase
    pipelines: Sequence[Pipeline]
    world: World
    faults: Faults
    clock: VirtualClock
    trace: Trace
    rng: random.Random
    claimed: Callable[[int, Sequence[int]], None]
    """Told of every claim: how many were asked for, and the ids that came."""


class Process:
    """One start of one process; a restart is a new one, with a new owner and nothing in memory."""

    def __init__(self, name: str, ground: Ground) -> None:
        self.name = name
        self.owner = f"{name}-{ground.rng.getrandbits(32):08x}"
        self.is_dead = False
        self.stalled_until = 0.0
        self.cut_until = 0.0
        self._ground = ground
        self._tasks: list[asyncio.Task[Any]] = []
        self._stop = asyncio.Event()
        self.is_over = asyncio.Event()
        self._main: asyncio.Task[None] | None = None
        self._assemble()

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Take note of a task that was started inside."""
        self._tasks.append(task)
        if len(self._tasks) > 200:
            self._tasks = [task for task in self._tasks if not task.done()]

    def _assemble(self) -> None:
        ground, monotonic = self._ground, asyncio.get_running_loop().time
        self.executor = InlineExecutor(self, ground.faults, self._replied)
        self.waker = Waker()
        ledger = StoreLedger(ground.database, self.executor)
        nothing: Any = object()  # No pipeline here fetches, extracts or asks for a judgment.
        self._kit = Kit(nothing, nothing, nothing, ledger, ground.clock)
        sender = self._sender(ledger, monotonic)
        self.pipelines = {p.name: with_deliveries(p, sender) if p.announce else p for p in ground.pipelines}
        self.store = open_store(
            ground.database,
            self.pipelines,
            on_work=self.waker.wake_all,
            channels={CHANNEL: "room"},
            intake_days=3,
            dead_letter_days=20,
            journal_days=60,
            monotonic=monotonic,
        )
        self.runner = Runner(self.pipelines, deliver=self._deliver, rng=ground.rng, monotonic=monotonic)

    def _replied(self, call: str, args: tuple[Any, ...], reply: Any) -> None:
        if call == "claim" and isinstance(reply, list):
            self._ground.claimed(args[2], [lease.id for lease in reply])
        if (told := _brief(reply)) is not None:
            self._ground.trace.add(self.name, f"{call} {told}")

    def _sender(self, ledger: StoreLedger, monotonic: Callable[[], float]) -> Sender:
        async def pause(name: str, reason: str) -> None:
            await ledger.pause(f"channel:{name}", reason)

        async def is_paused(name: str) -> bool:
            return f"channel:{name}" in await ledger.pauses()

        async def ahead(work: Work) -> int:
            return await self.executor.read(self.store.items.deliveries_before, work.body.channel, work.item_id)

        async def closed_for_ms(rate: str) -> int:
            return (await self.executor.read(self.store.limiters.usage, rate)).closed_for_ms

        channel = Channel(CHANNEL, Room(self._ground.world, self.refuse_dead), limit=30, hold_seconds=80)

        # The store is made of the pipelines, and they of this sender: so it is looked up when something is sent.
        async def open_digest(pipeline: str, prefix: str) -> str | None:
            return await self.executor.read(self.store.items.open_digest, pipeline, prefix)

        async def gathered(work: Work) -> list[GatheredDelivery]:
            digest = ref(DELIVERY, work.key)
            rows = await self.executor.read(self.store.items.gathered_deliveries, work.pipeline, digest, MEMBERS_MAX)
            return [GatheredDelivery(row.key, bytes(row.body)) for row in rows]

        return Sender(
            {CHANNEL: channel}, ledger.enter, ledger.leave, pause, is_paused, ahead, closed_for_ms,
            open_digest, gathered, monotonic=monotonic,
        )  # fmt: skip

    def _deliver(self, work: Work, notices: tuple[Notice, ...]) -> tuple[Finding, ...]:
        return deliveries_for(work.pipeline, work, notices, [Route(work.pipeline, CHANNEL)])

    def refuse_dead(self) -> None:
        """Raise where this process is dead: nothing leaves it any more."""
        if self.is_dead:
            raise Died

    def start(self) -> None:
        """Run all loops in a context that belongs to this process."""
        token = OWNER.set(self)
        try:
            self._main = asyncio.get_running_loop().create_task(self._run())
        finally:
            OWNER.reset(token)

    async def _run(self) -> None:
        """Run the loops as the real process does: the first that fails ends the others, and the process with them."""
        worker = self._worker()
        loops: list[Loop] = [lambda stop: worker.run(stop, GRACE_SECONDS), self._poller().run, self._sweeper().run]
        try:
            await run_loops(loops, self._stop)
        except Exception as error:  # noqa: BLE001  # the process ends, and is started again
            self._ground.trace.add(self.name, f"ends by {type(error).__name__}")
        self.is_dead = True
        self.is_over.set()

    def _worker(self) -> Worker:
        return Worker(
            items=self.store.items,
            log=self.store.intake,
            runner=self.runner,
            kit=self._kit,
            executor=self.executor,
            pipelines=self.pipelines,
            owner=self.owner,
            waker=self.waker,
            lanes=LANES,
            lease_seconds=LEASE_SECONDS,
            paused=self.store.pauses.reasons,
            record=self.store.alerts.put_samples,
            poll_seconds=POLL_SECONDS,
            monotonic=asyncio.get_running_loop().time,
        )

    def _poller(self) -> Poller:
        return Poller(
            sources=self.store.source_list,
            schedules=self.store.schedules,
            intake=self.store.intake,
            executor=self.executor,
            kit=self._kit,
            owner=self.owner,
            now_ms=self.store.now_ms,
            rng=self._ground.rng,
            poll_seconds=POLL_SECONDS,
        )

    def _sweeper(self) -> Sweeper:
        return Sweeper(
            items=self.store.items,
            executor=self.executor,
            tidy=self.store.retention.tidy,
            waker=self.waker,
            sweep_seconds=3.0,
            tidy_seconds=12.0,
            monotonic=asyncio.get_running_loop().time,
        )

    def die(self) -> bool:
        """Be gone at once: whatever awaits anything here is cut off, and nothing more of it is written."""
        if self._main is None:
            return False  # the desk has no loops: its callers lose their replies, and that is all
        if self.is_dead:
            return True
        self.is_dead = True
        self.is_over.set()
        self._ground.trace.add(self.name, "dies")
        current = asyncio.current_task()
        for task in self._tasks:
            if task is not current:
                task.cancel()
        return True

    async def stop(self) -> None:
        """Stop as on SIGTERM."""
        self._ground.trace.add(self.name, "is told to stop")
        self._stop.set()
        self.waker.wake_all()
        await self.is_over.wait()

    async def end(self) -> None:
        """Let the last tasks of a dead process end."""
        for _ in range(50):
            left = [task for task in self._tasks if not task.done()]
            if not left:
                return
            for task in left:
                task.cancel()
            await asyncio.sleep(0)


def _brief(reply: Any) -> str | None:
    """Say what a call brought, in a few words that are the same every time; None where it brought nothing."""
    if isinstance(reply, list):
        return ", ".join(f"{lease.key}@{lease.token}" for lease in reply if isinstance(lease, Lease)) or None
    if isinstance(reply, Settled):
        return f"done {sorted(reply.done)} stale {sorted(reply.stale)} born {reply.born}"
    if isinstance(reply, tuple) and reply and isinstance(reply[0], Merged):
        merged, taken = reply
        return f"{_merged(merged)} took {list(taken.ids)}" if taken else _merged(merged) if merged.read else None
    if isinstance(reply, Merged):
        return _merged(reply) if reply.read else None
    if isinstance(reply, Swept):
        return f"expired {reply.expired} poisoned {reply.poisoned}" if reply.expired else None
    if isinstance(reply, Appended):
        return f"new {reply.new} changed {reply.changed} unchanged {reply.unchanged}"
    return str(sorted(reply)) if isinstance(reply, set | frozenset) and reply else None


def _merged(merged: Merged) -> str:
    return f"read {merged.read} born {merged.born} changed {merged.changed} to {merged.checkpoint}"
