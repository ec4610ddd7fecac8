"""Everything outside: services that answer late, twice or never, a room that keeps what it is told, lists to read."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from simulation.history import Trace
from tidings.model.contracts import Kit, Receipt
from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, Transient
from tidings.model.item import Finding
from tidings.model.pipeline import Page, Run, Schedule
from tidings.model.publication import Notice
from tidings.model.workflow import Work

PAGE_SIZE = 3


@dataclass
class World:
    """What outside services do, and what they saw. Troubles end when the faults do."""

    rng: random.Random
    trace: Trace
    trouble: float
    """How likely an outside service fails a request."""
    is_troubled: bool = True
    heard: dict[str, Heard] = field(default_factory=dict)
    """What the room was told, by delivery."""
    on_send: Callable[[str], None] = lambda _: None
    spent: int = 0

    async def fetch(self, work: Work) -> str:
        """Get a page's text."""
        self.trace.add("world", f"fetch {work.key} revision {work.revision} attempt {work.attempt}")
        await self._take_time()
        self._fail()
        return f"text of {work.key}"

    async def answer(self, work: Work) -> int:
        """Ask a question; what it costs is never more than was set aside."""
        self.trace.add("world", f"asked about {work.key} revision {work.revision}")
        await self._take_time()
        self._fail()
        cost = self.rng.randint(1, 10)
        self.spent += cost
        return cost

    async def _take_time(self) -> None:
        drawn = self.rng.random()
        slow = self.is_troubled and drawn < self.trouble / 2
        await asyncio.sleep(self.rng.uniform(5, 70) if slow else drawn * 0.3)

    def _fail(self) -> None:
        if not self.is_troubled or self.rng.random() > self.trouble:
            return
        kind = self.rng.randrange(4)
        if kind == 0:
            raise SlowDown("too many requests", retry_after_seconds=self.rng.uniform(1, 20))
        if kind == 1:
            raise Permanent("410 gone")
        raise Transient("connection reset", retry_after_seconds=self.rng.choice((None, 5.0)))

    async def tell(self, delivery: str, title: str) -> Receipt:
        """Take a message, or not, and say so, or not."""
        self.on_send(delivery)
        heard = self.heard.setdefault(delivery, Heard(title))
        heard.requests += 1
        self.trace.add("world", f"told {delivery} ({title}), request {heard.requests}")
        await self._take_time()
        outcome = self._outcome()
        heard.accepted += outcome in ("done", "done unheard")
        heard.unknown += outcome in ("done unheard", "unheard")
        return _reply(outcome, heard)

    def _outcome(self) -> str:
        if not self.is_troubled or self.rng.random() > 2 * self.trouble:
            return "done"
        return self.rng.choice(("done unheard", "done unheard", "unheard", "refused", "slow down", "misconfigured"))


@dataclass
class Heard:
    """What the room knows of one delivery."""

    title: str
    requests: int = 0
    accepted: int = 0
    unknown: int = 0
    """Requests whose outcome the sender could not know."""


def _reply(outcome: str, heard: Heard) -> Receipt:
    if outcome in ("done unheard", "unheard"):
        raise Ambiguous("the connection was reset after the request")
    if outcome == "refused":
        raise Transient("connection refused")
    if outcome == "slow down":
        raise SlowDown("429", retry_after_seconds=3.0)
    if outcome == "misconfigured":
        raise Misconfigured("the webhook is gone")
    return Receipt(f"message {heard.accepted}", "204")


@dataclass(frozen=True)
class Room:
    """A notifier that reaches the room, for as long as its process lives."""

    world: World
    live: Callable[[], Any]
    """Raises where the process is dead: a dead sender's request never leaves."""

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Send one notice."""
        self.live()
        return await self.world.tell(delivery_id, notice.title)

    def render(self, notice: Notice, delivery_id: str) -> Any:
        """Return what would be sent."""
        return {"title": notice.title, "id": delivery_id}


@dataclass
class ListSource:
    """A list that grows; the cursor is how far it was read. Pages overlap, as real ones do."""

    name: str
    world: World
    schedule: Schedule = Schedule(every_seconds=4)
    entries: list[Finding] = field(default_factory=list)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:  # noqa: ARG002  # a source's form
        """Yield what was not read yet."""
        start = run.cursor or 0
        while start < len(self.entries):
            await self.world._take_time()
            self.world._fail()
            end = min(len(self.entries), start + PAGE_SIZE)
            yield Page(tuple(self.entries[max(0, start - 1) : end]), cursor=end, mark=end)
            start = end
