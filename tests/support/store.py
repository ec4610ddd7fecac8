"""The store under test, without loops: findings go in, leases come out, and only the clock is ours."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import Future, wait
from typing import Any

from tests.support import example
from tests.support.own_sql import own_sql
from tidings.model.attempt import relate
from tidings.model.item import Finding, Item, JournalRow, Lease
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Merged, Settled, Settlement
from tidings.process.runner import Runner
from tidings.store.db.database import Database, connect
from tidings.store.store import open_store
from tidings.store.upkeep.migrate import migrate

LEASE_SECONDS = 900.0
Dump = dict[str, list[tuple[Any, ...]]]


def altered(finding: Finding, **changes: Any) -> Finding:
    """Return a finding with some fields changed."""
    names = ("pipeline", "kind", "key", "fingerprint", "payload", "priority")
    return Finding(**{name: getattr(finding, name) for name in names} | changes)


class Ground:
    """A store over the example pipeline (or others); a second one on the same address stands for another process."""

    def __init__(self, url: str, *pipelines: Pipeline, database: Database | None = None, **options: Any) -> None:
        self.url = url
        self.pipelines = {p.name: p for p in pipelines or (example.pipeline(),)}
        self.name = next(iter(self.pipelines))
        self.database = database or connect(url, durability="crash-safe")
        migrate(self.database)
        self.store = open_store(self.database, self.pipelines, **options)
        self.runner = Runner(self.pipelines, rng=random.Random(1))
        self._offset_ms = 0

    def close(self) -> None:
        """Close every connection."""
        self.database.close()

    def advance(self, *, seconds: float) -> None:
        """Move the database's clock."""
        self._offset_ms += round(seconds * 1000)
        self.database.move_clock(self._offset_ms)

    def now_ms(self) -> int:
        """Return the database's clock."""
        return self.store.now_ms()

    def record(self, *findings: Finding) -> Merged:
        """Append findings and merge them all."""
        self.store.intake.append(self.name, findings)
        return self.merge()

    def merge(self) -> Merged:
        """Merge all that waits; return the sums."""
        total = Merged()
        while (merged := self.store.intake.merge(self.name)).read:
            total += merged
        return total

    def claim(
        self, limit: int = 10, *, lane: str = "pure", owner: str = "worker", seconds: float = LEASE_SECONDS, **more: Any
    ) -> list[Lease]:
        """Lease due items."""
        return self.store.items.claim(self.name, lane, limit, owner, seconds, **more)

    def claim_one(self, **more: Any) -> Lease:
        """Lease the one item that is due."""
        (lease,) = self.claim(1, **more)
        return lease

    def attempt(self, lease: Lease) -> Settlement:
        """Make one attempt, as a worker would."""
        attempt = self.runner.begin(lease, LEASE_SECONDS)
        if isinstance(attempt, Settlement):
            return attempt
        while (settlement := self.runner.run_pure(attempt)) is None:
            relate(attempt, self.store.items.prefetch(lease.pipeline, attempt.needs))
        return settlement

    def settle(self, *leases: Lease) -> Settled:
        """Make an attempt at each and settle them as one batch."""
        return self.store.items.settle([self.attempt(lease) for lease in leases])

    def work(self, rounds: int = 50) -> None:
        """Claim and settle until nothing is due."""
        for _ in range(rounds):
            leases = self.claim(100)
            if not leases:
                return
            self.settle(*leases)
        raise AssertionError("the work never ends")

    def item(self, key: str, kind: str = "thing") -> Item:
        """Return one item."""
        item = self.store.items.find(self.name, kind, key)
        assert item is not None, f"there is no {kind} {key}"
        return item

    def has(self, key: str, kind: str = "thing") -> bool:
        """Tell whether an item exists."""
        return self.store.items.find(self.name, kind, key) is not None

    def life(self, key: str, kind: str = "thing") -> list[JournalRow]:
        """Return an item's journal."""
        return self.store.items.life(self.item(key, kind).id)

    def card(self, key: str) -> bytes | None:
        """Return what readers see of a thing."""
        entry = self.store.shelf.get(self.name, f"thing:{key}")
        return entry.value if entry else None

    def sql(self, text: str, **values: Any) -> list[tuple[Any, ...]]:
        """Read with SQL of the test's own."""
        with self.database.reading() as tx:
            return own_sql(tx, text, values)

    def write(self, text: str, **values: Any) -> None:
        """Write with SQL of the test's own, to make a situation no call makes."""
        with self.database.transaction() as tx:
            own_sql(tx, text, values)

    def wait_until_blocked(self, call: Future[Any], *, seconds: float = 20) -> None:
        """Wait until a call made by another thread waits for a lock of this database, or has ended without one.

        On SQLite a second writer always waits, and nobody can see it.
        """
        blocked = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        if self.database.dialect == "postgres":
            for _ in range(round(seconds * 50)):
                if self.sql(blocked) or wait([call], timeout=0.02).done:
                    return
            raise AssertionError("the call neither waits nor ends")

    def tables(self) -> list[str]:
        """Name every table, the full text's own ones too."""
        if self.database.dialect == "sqlite":
            rows = self.sql("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        else:
            rows = self.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
        return [row[0] for row in rows]

    def dump(self, tables: Sequence[str] | None = None) -> Dump:
        """Return every row of every table."""
        return {
            table: sorted(tuple(map(repr, row)) for row in self.sql(f"SELECT * FROM {table}"))
            for table in tables or self.tables()
        }
