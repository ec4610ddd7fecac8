"""The sweeper acts on what it saw: whatever happened to a lease between its look and its update stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.example import thing
from tests.support.store import LEASE_SECONDS, Ground

from tidings.process.sweeper import BATCH, Sweeper
from tidings.process.waker import Waker
from tidings.store.db.executor import StoreExecutor

OpenGround = Callable[..., Ground]
LATER = LEASE_SECONDS + 1


def test_a_lease_renewed_under_the_sweepers_eyes_is_not_swept(open_ground: OpenGround) -> None:
    """The heartbeat came in time, its COMMIT did not: the sweeper still reads the old end of the lease."""
    worker, sweeper, looking = open_ground(), open_ground(), open_ground()
    worker.record(thing("a"))
    lease = worker.claim_one()
    sweeper.advance(seconds=LATER)

    with ThreadPoolExecutor(1) as pool:
        with worker.database.transaction():
            assert worker.store.items.renew([(lease.id, lease.token)], 10 * LEASE_SECONDS) == {lease.id}
            sweeping = pool.submit(sweeper.store.items.sweep)
            looking.wait_until_blocked(sweeping)
        assert sweeping.result().expired == 0

    assert worker.settle(lease).done == {lease.id}
    assert worker.item("a").state == "shown"
    assert [row.kind for row in worker.life("a")] == ["born", "attempt"]


@pytest.mark.parametrize("how", ["swept", "released"])
def test_a_lease_that_others_ended_is_not_swept_again(open_ground: OpenGround, how: str) -> None:
    """The item is leased again by then, and that lease is over too: it is not the one the sweeper saw."""
    worker, sweeper, looking = open_ground(), open_ground(), open_ground()
    worker.record(thing("a"))
    lease = worker.claim_one()
    for process in (worker, sweeper):
        process.advance(seconds=LATER)

    with ThreadPoolExecutor(1) as pool:
        with worker.database.transaction():
            if how == "swept":
                assert worker.store.items.sweep().expired == 1
            else:
                assert worker.store.items.release([(lease.id, lease.token)]) == 1
            heir = worker.claim_one(seconds=0)
            sweeping = pool.submit(sweeper.store.items.sweep)
            looking.wait_until_blocked(sweeping)
        sweeping.result()
    sweeper.store.items.sweep()

    closed = Counter((row.token, row.kind) for row in worker.life("a") if row.kind != "born")
    assert closed == {(lease.token, how): 1, (heir.token, "swept"): 1}
    assert worker.item("a").lost_leases == (2 if how == "swept" else 1)


async def test_the_sweeper_returns_every_expired_lease_however_many(ground: Ground) -> None:
    ground.record(*(thing(str(n)) for n in range(2 * BATCH + 1)))
    assert len(ground.claim(2 * BATCH + 1)) == 2 * BATCH + 1
    ground.advance(seconds=LATER)
    executor = StoreExecutor(ground.database)
    try:
        swept = await Sweeper(items=ground.store.items, executor=executor, tidy=dict, waker=Waker()).sweep()
    finally:
        executor.close()

    assert swept.expired == 2 * BATCH + 1
    assert ground.sql("SELECT count(*) FROM items WHERE lease_until IS NOT NULL") == [(0,)]
