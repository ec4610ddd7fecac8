"""Other job queues on the work of `bench.engine`: three chained trivial stages, each durable, payloads of 1 KB.

Each peer runs in a process of its own, which fills its queue and then starts its worker. The clock runs from the first
stage of the first item to the last stage of the last, so neither filling nor starting counts. The floor is the
hand-written queue of `bench.engine_floor` on the same database in the same run.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import psycopg

from bench import engine, engine_floor
from bench.machine import Server, postgres

QUICK, FULL = 300, 2_000
FLOOR = engine.QUICK
PATIENCE_SECONDS = 180


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure every peer that is installed; the others give a row that says why not."""
    count = QUICK if quick else FULL
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        path = Path(folder) / "floor.db"
        floor = engine_floor.sqlite(path, engine.payloads(FLOOR), engine.BATCH, engine.SYNCHRONOUS["power-safe"])
        rows += [_row(name, "SQLite", f"{folder}/{name}.db", count, floor) for name in ("huey", "dbos")]
        with postgres(folder) as server:
            floor = _postgres_floor(server)
            for name in ("procrastinate", "pgqueuer"):
                rows.append(_row(name, "PostgreSQL", server.new_database(), count, floor))
    return rows


def _postgres_floor(server: Server) -> dict[str, float]:
    url = server.new_database()
    engine_floor.fill_postgres(url, engine.payloads(FLOOR))
    return engine_floor.empty_postgres(url, engine.BATCH)


def _row(name: str, database: str, place: str, count: int, floor: dict[str, float]) -> dict[str, Any]:
    row: dict[str, Any] = {"what": f"three stages by {name} on {database}", "value": None, "unit": "items/s"}
    floor_rate = FLOOR / floor["seconds"]
    seconds = _seconds(name, place, count)
    if isinstance(seconds, str):
        return {**row, "floor": floor_rate, "ratio": None, "reason": seconds}
    rate = count / seconds
    return {**row, "value": rate, "floor": floor_rate, "ratio": rate / floor_rate}


def _seconds(name: str, place: str, count: int) -> float | str:
    """Measure one peer in a process of its own; return its seconds, or why there are none."""
    if importlib.util.find_spec(name) is None:
        return "not installed"
    command = [sys.executable, "-m", "bench.peers", name, place, str(count)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS + 60)
    except subprocess.TimeoutExpired:
        return f"not finished after {PATIENCE_SECONDS + 60} seconds"
    if ended.returncode:
        return (ended.stderr.strip().splitlines() or [f"ended with {ended.returncode}"])[-1]
    return float(json.loads(ended.stdout.splitlines()[-1])["seconds"])


class Tally:
    """What has passed through the stages, and since when."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._started = self._ended = 0.0
        self._lock = threading.Lock()
        self._done = threading.Event()

    def first(self) -> None:
        """Note that an item entered the first stage."""
        self._started = self._started or time.perf_counter()

    def last(self) -> None:
        """Note that an item passed the last stage."""
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._ended = time.perf_counter()
                self._done.set()

    def wait(self) -> float:
        """Wait for the last item; return the seconds all took."""
        if not self._done.wait(PATIENCE_SECONDS):
            raise TimeoutError(f"{self._left} items left after {PATIENCE_SECONDS} seconds")
        return self._ended - self._started


def huey(place: str, texts: list[str], tally: Tally) -> float:
    """Let every stage enqueue the next; power-safe as our own, but a job is lost with its worker."""
    from huey import SqliteHuey

    queue = SqliteHuey(filename=place, fsync=True, results=False)

    @queue.task()
    def third(text: str) -> None:
        tally.last()

    @queue.task()
    def second(text: str) -> None:
        third(text)

    @queue.task()
    def first(text: str) -> None:
        tally.first()
        second(text)

    for text in texts:
        first(text)
    consumer = queue.create_consumer(workers=1, periodic=False)
    consumer.start()
    seconds = tally.wait()
    consumer.stop(graceful=True)
    return seconds


def procrastinate(place: str, texts: list[str], tally: Tally) -> float:
    """Let every stage defer the next."""
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=place))

    @app.task(name="third")
    async def third(text: str) -> None:
        tally.last()

    @app.task(name="second")
    async def second(text: str) -> None:
        await third.defer_async(text=text)

    @app.task(name="first")
    async def first(text: str) -> None:
        tally.first()
        await second.defer_async(text=text)

    async def work() -> float:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            await first.batch_defer_async(*({"text": text} for text in texts))
            worker = asyncio.create_task(app.run_worker_async(concurrency=10, install_signal_handlers=False))
            try:
                return await asyncio.to_thread(tally.wait)
            finally:
                worker.cancel()
                await asyncio.gather(worker, return_exceptions=True)

    return asyncio.run(work())


def pgqueuer(place: str, texts: list[str], tally: Tally) -> float:
    """Let every stage enqueue the next; its worker claims and settles in batches."""
    from pgqueuer import PgQueuer, PsycopgDriver, Queries

    async def work() -> float:
        async with await psycopg.AsyncConnection.connect(place, autocommit=True) as connection:
            driver = PsycopgDriver(connection)
            queries, queue = Queries(driver), PgQueuer(driver)
            await queries.install()

            @queue.entrypoint("first")
            async def first(job: Any) -> None:
                tally.first()
                await queries.enqueue("second", job.payload)

            @queue.entrypoint("second")
            async def second(job: Any) -> None:
                await queries.enqueue("third", job.payload)

            @queue.entrypoint("third")
            async def third(job: Any) -> None:
                tally.last()

            payloads = [text.encode() for text in texts]
            await queries.enqueue(["first"] * len(texts), cast("list[bytes | None]", payloads), [0] * len(texts))
            worker = asyncio.create_task(queue.run(batch_size=engine.BATCH))
            try:
                return await asyncio.to_thread(tally.wait)
            finally:
                queue.shutdown.set()
                await asyncio.gather(worker, return_exceptions=True)

    return asyncio.run(work())


def dbos(place: str, texts: list[str], tally: Tally) -> float:
    """Run a queued workflow of three recorded steps; the file is set to WAL, which is faster than its default."""
    from dbos import DBOS

    with sqlite3.connect(place) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{place}", "log_level": "ERROR"})

    @DBOS.step()
    def step(text: str) -> str:
        return text

    @DBOS.workflow()
    def stages(text: str) -> None:
        tally.first()
        step(step(step(text)))
        tally.last()

    DBOS.launch()
    for text in texts:
        DBOS.enqueue_workflow("bench", stages, text)
    DBOS.register_queue("bench", polling_interval_sec=0.1)
    return tally.wait()


PEERS: dict[str, Callable[[str, list[str], Tally], float]] = {
    "huey": huey,
    "dbos": dbos,
    "procrastinate": procrastinate,
    "pgqueuer": pgqueuer,
}


def main() -> None:
    """Measure one peer and tell how long it took."""
    name, place, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    logging.disable(logging.WARNING)
    texts = [payload.decode() for payload in engine.payloads(count)]
    print(json.dumps({"seconds": PEERS[name](place, texts, Tally(count))}), flush=True)
    os._exit(0)  # Threads of a peer's own may still be polling.


if __name__ == "__main__":
    main()
