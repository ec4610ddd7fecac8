"""A durable pipeline of three trivial stages, each settled by itself, beside the hand-written floor.

Payloads of 1 KB, the queue filled beforehand, the real worker in processes of its own. CPU counts the workers and, on
PostgreSQL, the server; it survives a busy machine better than items a second do.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import msgspec
import psycopg
from tests.support.own_sql import own_sql

from bench import engine_floor
from bench.machine import Server, postgres
from tidings.model.item import Finding
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import PURE, Transition, Work, Workflow
from tidings.process.lanes import LANES
from tidings.process.runner import Runner
from tidings.process.waker import Waker
from tidings.process.worker import Worker
from tidings.store.db.database import Durability, connect
from tidings.store.db.executor import StoreExecutor
from tidings.store.store import Store, open_store
from tidings.store.upkeep.migrate import migrate

BATCH = LANES[PURE].batch
QUICK, FULL = 4_000, 20_000
APPEND = 1_000
SYNCHRONOUS: dict[Durability, str] = {"power-safe": "FULL", "crash-safe": "NORMAL"}


def step(work: Work) -> Outcome:
    """Do nothing."""
    return Advance()


def pipeline(*, fuse: bool) -> Pipeline:
    """Declare three stages."""
    states = engine_floor.STATES
    moves = tuple(Transition(f"to_{b}", a, b, processor=step) for a, b in pairwise(states))
    workflow = Workflow("job", "found", states, moves, frozenset({"done"}), fuse=fuse)
    return Pipeline("bench", "Bench", "Three trivial stages.", {"job": workflow})


def payloads(count: int) -> list[bytes]:
    """Write documents of 1 KB."""
    return [msgspec.json.encode({"id": n, "text": f"{n} " + "word " * 196}) for n in range(count)]


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure every combination beside its floor."""
    count = QUICK if quick else FULL
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        for durability in SYNCHRONOUS:
            rows += _sqlite(Path(folder), count, durability)
        with postgres(folder) as server:
            for workers in (1, 2):
                rows += _postgres(server, count, workers)
            rows += _claims(Path(folder), server, finished=100_000 if quick else 1_000_000)
    return rows


def _sqlite(folder: Path, count: int, durability: Durability) -> list[dict[str, Any]]:
    floor = engine_floor.sqlite(folder / f"floor-{durability}.db", payloads(count), BATCH, SYNCHRONOUS[durability])
    rows = []
    for fuse in (False, True) if durability == "power-safe" else (False,):
        url = f"sqlite:///{folder}/{durability}-{fuse}.db"
        fill(url, count, fuse)
        measured = _measure([["bench.engine", url, durability, str(fuse)]])
        rows += _rows(f"three stages{', fused,' if fuse else ''} on SQLite, {durability}", count, measured, floor)
    return rows


def _postgres(server: Server, count: int, workers: int) -> list[dict[str, Any]]:
    url = server.new_database()
    engine_floor.fill_postgres(url, payloads(count))
    floor = _measure([["bench.engine_floor", url, str(BATCH)]] * workers, server)
    url = server.new_database()
    fill(url, count, fuse=False)
    measured = _measure([["bench.engine", url, "power-safe", "False"]] * workers, server)
    name = f"three stages on PostgreSQL, {workers} worker process{'es' if workers > 1 else ''}"
    return _rows(name, count, measured, floor)


def _rows(what: str, count: int, measured: dict[str, float], floor: dict[str, float]) -> list[dict[str, Any]]:
    rate, floor_rate = count / measured["seconds"], count / floor["seconds"]
    cpu, floor_cpu = measured["cpu"] / count * 1000, floor["cpu"] / count * 1000
    return [
        {"what": what, "value": rate, "unit": "items/s", "floor": floor_rate, "ratio": rate / floor_rate},
        {"what": f"CPU, {what}", "value": cpu, "unit": "ms an item", "floor": floor_cpu, "ratio": cpu / floor_cpu},
    ]


def fill(url: str, count: int, fuse: bool) -> None:
    """Append and merge the queue."""
    store = _open(url, "crash-safe", fuse)
    findings = [Finding("bench", "job", str(n), "1", p) for n, p in enumerate(payloads(count))]
    for start in range(0, count, APPEND):
        store.intake.append("bench", findings[start : start + APPEND])
    while store.intake.merge("bench").read:
        pass
    if store.database.dialect == "postgres":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
    store.database.close()


def _open(url: str, durability: Durability, fuse: bool) -> Store:
    database = connect(url, durability=durability)
    migrate(database)
    return open_store(database, {"bench": pipeline(fuse=fuse)})


def _measure(commands: list[list[str]], server: Server | None = None) -> dict[str, float]:
    """Start processes, let them go at once, and return the time of the slowest and the CPU of all."""
    running = [
        subprocess.Popen([sys.executable, "-m", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for command in commands
    ]
    for process in running:
        assert cast(Any, process.stdout).readline() == "ready\n"
    before = server.cpu_seconds() if server else 0.0
    for process in running:
        cast(Any, process.stdin).write("go\n")
        cast(Any, process.stdin).flush()
    answers = [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]
    of_server = server.cpu_seconds() - before if server else 0.0
    return {"seconds": max(a["seconds"] for a in answers), "cpu": sum(a["cpu"] for a in answers) + of_server}


def _claims(folder: Path, server: Server, finished: int) -> list[dict[str, Any]]:
    """Measure a claim beside few and beside many finished items."""
    rows = []
    for name, url in (("SQLite", f"sqlite:///{folder}/claims.db"), ("PostgreSQL", server.new_database())):
        store = _open(url, "crash-safe", fuse=False)
        few = _claim_ms(store, 10_000, 0)
        many = _claim_ms(store, finished - 10_000, 10_000)
        rows.append(
            {
                "what": f"claim of 100 beside {finished:,} finished items (floor: 10,000), {name}",
                "value": many,
                "unit": "ms",
                "floor": few,
                "ratio": many / few,
            }
        )
        store.database.close()
    return rows


def _claim_ms(store: Store, more: int, already: int) -> float:
    """Add finished items and a little due work, then return the median time of a claim."""
    numbers = (
        "WITH RECURSIVE n (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM n WHERE n < :last)"
        if store.database.dialect == "sqlite"
        else "WITH n (n) AS (SELECT generate_series(:first::bigint, :last::bigint))"
    )
    insert = (
        f"{numbers} INSERT INTO items (pipeline, kind, key, fingerprint, state, standing, priority, created_at, "
        "changed_at, state_since) SELECT 'bench', 'job', 'f' || n, '1', 'done', 'done', 1, n, n, n FROM n"
    )
    for first in range(already, already + more, 50_000):
        with store.database.transaction() as tx:
            own_sql(tx, insert, {"first": first, "last": min(first + 50_000, already + more) - 1})
    due = [Finding("bench", "job", f"due {already} {n}", "1", p) for n, p in enumerate(payloads(1_000))]
    store.intake.append("bench", due)
    while store.intake.merge("bench").read:
        pass
    if store.database.dialect == "postgres":
        with psycopg.connect(cast(Any, store.database).url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE items")
    times = []
    for _ in range(60):
        started = time.perf_counter()
        leases = store.items.claim("bench", PURE, 100, "bench", 900)
        times.append((time.perf_counter() - started) * 1000)
        assert len(leases) == 100
        store.items.release([(lease.id, lease.token) for lease in leases])
    return statistics.median(times)


def main() -> None:
    """Wait for a line, then work until nothing is due and tell how long it took."""
    url, durability, fuse = sys.argv[1], cast(Durability, sys.argv[2]), sys.argv[3] == "True"
    store = _open(url, durability, fuse)
    print("ready", flush=True)
    sys.stdin.readline()
    started, cpu = time.perf_counter(), time.process_time()
    asyncio.run(_work(store, {"bench": pipeline(fuse=fuse)}))
    measured = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    with store.database.reading() as tx:
        assert own_sql(tx, "SELECT DISTINCT state FROM items WHERE lease_until IS NULL") == [("done",)]
    store.database.close()
    print(json.dumps(measured), flush=True)


async def _work(store: Store, pipelines: dict[str, Pipeline]) -> None:
    executor = StoreExecutor(store.database)
    worker = Worker(
        items=store.items,
        log=store.intake,
        runner=Runner(pipelines),
        kit=cast(Any, None),
        executor=executor,
        pipelines=pipelines,
        owner=secrets.token_hex(4),
        waker=Waker(),
    )
    try:
        await worker.until_idle()
    finally:
        executor.close()


if __name__ == "__main__":
    main()
