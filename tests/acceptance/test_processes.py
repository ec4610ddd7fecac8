"""Real processes race, are killed and are stopped; nothing is lost and nothing is settled twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter

import pytest
from tests.acceptance.example_processes import started
from tests.support.example import pipeline, thing
from tests.support.own_sql import own_sql
from tests.support.waiting import until

from tidings.store.db.database import Database, connect
from tidings.store.store import Store, open_store
from tidings.store.upkeep.migrate import migrate

FULL = os.environ.get("TIDINGS_STORM") == "full"
RACE_ITEMS = 5_000 if FULL else 1_000
STORM_ITEMS, STORM_KILLS, STORM_WORKERS = (5_000, 100, 4) if FULL else (2_000, 24, 3)
STOPS = 40 if FULL else 8
SECONDS_MAX = 900 if FULL else 150

pytestmark = pytest.mark.slow


def store_of(url: str) -> tuple[Database, Store]:
    database = connect(url, durability="crash-safe")
    migrate(database)
    return database, open_store(database, {"example": pipeline(fuse=False)}, intake_days=0)


def finished(store: Store) -> int:
    return store.status_views.status().pipelines["example"].states["shown"]


def assert_nothing_lost_or_repeated(database: Database, accepted: set[str]) -> None:
    """Every accepted key is an item at its end, and no lease token was closed twice."""
    with database.reading() as tx:
        states: dict[str, str] = dict(own_sql(tx, "SELECT key, state FROM items"))
        closed = own_sql(tx, "SELECT item, token FROM journal WHERE kind IN ('attempt', 'born') AND token > 0")
        moves = own_sql(tx, "SELECT item, to_state FROM journal WHERE ended = 'advanced'")
        leased = own_sql(tx, "SELECT count(*) FROM items WHERE lease_until IS NOT NULL")
        if database.dialect == "sqlite":
            assert own_sql(tx, "PRAGMA integrity_check") == [("ok",)]
    assert accepted <= states.keys(), "an accepted finding was lost"
    assert set(states.values()) == {"shown"}
    assert max(Counter(closed).values()) == 1, "a lease was closed twice"
    assert max(Counter(moves).values()) == 1, "a step was settled twice"
    assert leased == [(0,)]


async def test_two_updaters_and_two_processors_race_and_lose_nothing(database_url: str) -> None:
    database, store = store_of(database_url)
    half = RACE_ITEMS // 2
    shares = [(0, half + 200), (half - 200, half + 200)]
    async with contextlib.AsyncExitStack() as running:
        workers = [await running.enter_async_context(started("work", database_url)) for _ in range(2)]
        updaters = [
            await running.enter_async_context(started("update", database_url, str(first), str(count)))
            for first, count in shares
        ]
        checkpoints = []
        while any(updater.is_alive for updater in updaters):
            unmerged, checkpoint, total = store.intake.totals("example")
            checkpoints.append(checkpoint)
            assert unmerged <= total, "trimming touched what is not merged"
            await asyncio.sleep(0.05)
        assert [await updater.ended() for updater in updaters] == [0, 0]
        accepted = {key for updater in updaters for key in updater.said}
        assert accepted == {f"k{number}" for number in range(half * 2)}
        await until(lambda: finished(store) == len(accepted), seconds=SECONDS_MAX)
        for worker in workers:
            worker.send(signal.SIGTERM)
        assert [await worker.ended() for worker in workers] == [0, 0]
    assert checkpoints == sorted(checkpoints), "the checkpoint went back"
    assert_nothing_lost_or_repeated(database, accepted)
    database.close()


@pytest.mark.parametrize("role", ["work", "ahead"])
async def test_a_storm_of_kills_loses_nothing(database_url: str, role: str) -> None:
    database, store = store_of(database_url)
    keys = [f"k{number}" for number in range(STORM_ITEMS)]
    for start in range(0, STORM_ITEMS, 500):
        store.intake.append("example", [thing(key) for key in keys[start : start + 500]])
    rng = random.Random(7)
    kills = 0
    async with contextlib.AsyncExitStack() as running:
        workers = [await running.enter_async_context(started(role, database_url)) for _ in range(STORM_WORKERS)]
        async with asyncio.timeout(SECONDS_MAX):
            while finished(store) < STORM_ITEMS or kills < STORM_KILLS:
                await until(lambda: all(worker.owner for worker in workers), seconds=SECONDS_MAX)
                if kills < STORM_KILLS:
                    await asyncio.sleep(rng.uniform(0, 0.4))
                    place = rng.randrange(len(workers))
                    workers[place].send(signal.SIGKILL)
                    await workers[place].ended()
                    kills += 1
                    workers[place] = await running.enter_async_context(started(role, database_url))
                else:
                    await asyncio.sleep(0.1)
                _revive_poisoned(store)
    assert kills == STORM_KILLS
    assert_nothing_lost_or_repeated(database, set(keys))
    database.close()


@pytest.mark.parametrize("role", ["work", "ahead"])
async def test_a_thing_that_kills_its_worker_takes_no_other_with_it(database_url: str, role: str) -> None:
    """The worker is started again each time it dies, as a supervisor does; in the end the culprit alone is buried."""
    database, store = store_of(database_url)
    innocent = [f"i{number}" for number in range(40)]
    things = [thing(key) for key in innocent]
    store.intake.append("example", [*things[:20], thing("culprit", fate="exit"), *things[20:]])
    deaths = 0
    async with contextlib.AsyncExitStack() as running, asyncio.timeout(SECONDS_MAX):
        worker = await running.enter_async_context(started(role, database_url))
        while finished(store) < len(innocent) or not store.item_views.dead_letters():
            if not worker.is_alive:
                assert await worker.ended() == 9
                deaths += 1
                worker = await running.enter_async_context(started(role, database_url))
            await asyncio.sleep(0.05)
    (group,) = store.item_views.dead_letters()
    assert (group.cause, group.count) == ("poison", 1)
    assert 3 <= deaths <= 4
    database.close()


def _revive_poisoned(store: Store) -> None:
    """An item that lost its worker three times is a dead letter, as designed; an operator brings it back."""
    store.operations.revive(pipeline="example", cause="poison", actor="test")


@pytest.mark.parametrize("second", [None, signal.SIGTERM, signal.SIGKILL])
async def test_sigterm_at_any_moment_leaves_no_lease(database_url: str, second: signal.Signals | None) -> None:
    database, store = store_of(database_url)
    rng = random.Random(11)
    accepted: set[str] = set()
    for turn in range(STOPS // 2 if second is None else 2):
        page = [thing(f"t{turn}-{number}") for number in range(400)]
        store.intake.append("example", page)
        accepted |= {finding.key for finding in page}
        async with started("work", database_url) as worker:
            await until(lambda: bool(worker.owner), seconds=SECONDS_MAX)  # asked within this turn
            await asyncio.sleep(rng.uniform(0, 0.5))
            worker.send(signal.SIGTERM)
            if second is not None:
                await asyncio.sleep(0.02)
                worker.send(second)
            code = await worker.ended()
        if second is not signal.SIGKILL:
            # A second signal may find the process past its loop, on its way out: nothing is left to be stopped.
            assert code == 0 or second is not None
            with database.reading() as tx:
                owned = own_sql(tx, "SELECT count(*) FROM items WHERE lease_owner = :owner", {"owner": worker.owner})
            assert owned == [(0,)]
    async with started("work", database_url) as heir:
        await until(lambda: bool(heir.owner) and finished(store) == len(accepted), seconds=SECONDS_MAX)
        heir.send(signal.SIGTERM)
        assert await heir.ended() == 0
    assert_nothing_lost_or_repeated(database, accepted)
    database.close()
