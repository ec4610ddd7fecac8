"""The oracle: looks after every commit, and once more when all is at rest."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from simulation.clock import VirtualClock
from simulation.oracle import conservation, readers
from simulation.oracle.deliveries import Deliveries
from simulation.oracle.knowledge import Answer, Knowledge, Violation, decoded
from simulation.oracle.leases import Leases
from simulation.oracle.lives import Lives
from simulation.oracle.snapshot import ItemRow, Snapshot, take
from simulation.oracle.stream import StreamReader
from simulation.pipelines import NOTE, PAGE
from simulation.world import ListSource, World
from tidings.model.item import Appended, Finding
from tidings.model.workflow import Workflow
from tidings.store.db.database import Database

HEALTHY = ("", "fail", "break", "postpone")
"""Fates that end well once faults have ended."""


class Oracle:
    """Independent of the store's code: its own SELECTs, its own memory."""

    def __init__(
        self,
        database: Database,
        clock: VirtualClock,
        world: World,
        workflows: Mapping[tuple[str, str], Workflow],
        sources: Sequence[ListSource],
        lease_seconds: float,
    ) -> None:
        self._database = database
        self._clock = clock
        self._sources = sources
        self._lease_seconds = lease_seconds
        self._loop = asyncio.get_running_loop()
        self.known = Knowledge(dict(workflows), slack_ms=0 if database.dialect == "sqlite" else 2_000)
        self._leases = Leases(self.known)
        self._lives = Lives(self.known)
        self._deliveries = Deliveries(self.known, self._leases, world)
        self._stream = StreamReader(self.known, database)
        self.now = Snapshot()
        self.commits = 0
        self.broken = asyncio.Event()

    @property
    def violations(self) -> list[Violation]:
        """What was broken, first things first."""
        return self.known.violations

    def after_commit(self) -> None:
        """Check every rule between the last commit and this one."""
        before = self.now
        self.now = now = take(self._database, before, self._clock.now_ms())
        self.commits += 1
        conservation.check(self.known, before, now)
        for source in self._sources:
            conservation.check_cursor(self.known, now, source.name, source.entries)
        self._leases.check(before, now, self._loop.time())
        self._lives.check(before, now)
        self._deliveries.check(before, now)
        self._deliveries.check_heard()
        readers.check(self.known, before, now)
        self._stream.check(before, now)
        self._tell()

    def _tell(self) -> None:
        if self.violations:
            self.broken.set()

    def answered(self, findings: tuple[Finding, ...], appended: Appended) -> None:
        """Note what someone who offered copies was told."""
        conservation.check_answer(self.known, self.now, Answer(findings, appended))
        self._tell()

    def sending(self, delivery: str, owner: str) -> None:
        """Note that a request to the room begins."""
        self._deliveries.sending(delivery, owner, self.now, self._loop.time(), self._lease_seconds)
        self._tell()

    def claimed(self, limit: int, ids: Sequence[int]) -> None:
        """B8: a claim returns no more than was asked for, each item once."""
        if len(ids) > limit or len(set(ids)) < len(ids):
            self.known.break_rule("B8", f"a claim of {limit} returned {sorted(ids)}")
        self._tell()

    def jumped(self) -> None:
        """Note that the database's clock jumped."""
        self.known.jumps.append(self._loop.time())

    def check_rest(self) -> None:
        """C7, B12, D3: faults have ended and time has passed; everything is at a healthy rest."""
        now = self.now
        if now.unmerged:
            self.known.break_rule("C7", f"{len(now.unmerged)} findings are not merged")
        for item in now.items.values():
            if item.lease_until is not None or item.standing == "open" or item.waiting_revision is not None:
                self.known.break_rule("C7", f"{item} does not rest: {item}")
            self._ended_well(item)
        self._deliveries.check_rest(now)
        self._tell()

    def _ended_well(self, item: ItemRow) -> None:
        """C5, C7: each item ends as its newest copy wants, whatever its neighbors did."""
        copies = self.known.logs.get(item.name)
        if item.kind not in (NOTE, PAGE) or not copies:
            return
        last, standing = copies[-1], item.standing
        body = self.now.bodies.get(item.id, {}).get(item.accepted_revision or 0)
        if last.fate in HEALTHY:
            if standing != "done" or body is None or last.mark not in decoded(body).get("marks", ()):
                self.known.break_rule("C7", f"{item} should have shown {last}: {item.state}, {standing}, {item.cause}")
        elif last.fate == "reject" and standing != "rejected":
            self.known.break_rule("C7", f"{item} should be rejected, not {standing} in {item.state}")
        elif last.fate in ("die", "refuse") and standing not in ("dead", "parked"):
            self.known.break_rule("C7", f"{item} should be dead or parked, not {standing} in {item.state}")

    def check_counts(self, counted: Mapping[tuple[str, str, str], int]) -> None:
        """G2: at rest the counts people see are those that the journal tells."""
        told: Counter[tuple[str, str, str]] = Counter()
        for number, state in self._lives.states.items():
            item = self.now.items.get(number)
            if item is not None:
                told[item.pipeline, item.kind, state] += 1
        if told != counted:
            self.known.break_rule("G2", f"counted {dict(counted)}, the journal tells {dict(told)}")
        self._tell()
