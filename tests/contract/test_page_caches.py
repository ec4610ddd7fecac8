"""SQLite's page caches: many threads that read much take little memory, because the system keeps the pages anyway."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import apsw
from tests.support.own_sql import own_sql

from tidings.store.db.database import connect
from tidings.store.upkeep.migrate import migrate

THREADS = 8
MEGABYTES = 40


def test_threads_that_read_much_share_little_memory(tmp_path: Path) -> None:
    database = connect(f"sqlite:///{tmp_path / 'large.db'}", durability="crash-safe")
    migrate(database)
    with database.transaction() as tx:
        for number in range(MEGABYTES):
            values = {"key": str(number), "value": bytes(1 << 20)}
            own_sql(tx, "INSERT INTO caches VALUES ('large', :key, :value, 9999999999999)", values)
    before = apsw.memory_used()
    everybody = Barrier(THREADS)

    def read() -> int:
        everybody.wait(60)
        with database.reading() as tx:
            return sum(int(size) for (size,) in own_sql(tx, "SELECT length(hex(value)) FROM caches"))

    with ThreadPoolExecutor(THREADS) as threads:
        read_bytes = [each.result() for each in [threads.submit(read) for _ in range(THREADS)]]
        grown_mb = (apsw.memory_used() - before) / 2**20
    database.close()

    assert read_bytes == [2 * MEGABYTES << 20] * THREADS
    assert grown_mb < 64, "every thread keeps a large part of the file to itself"
