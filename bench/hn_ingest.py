"""Hacker-News-like items from JSON lines through the whole workflow to searchable, beside the floor on each database.

One process uploads while one or two others work, as in an installation; each tells its peak memory. `run` is called by
the table of all benchmarks; the module itself, as a program, is one of those processes.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

from tests.support.own_sql import own_sql

from bench import hn_floor, hn_items
from bench.machine import postgres

QUICK, FULL, LARGE = 5_000, 100_000, 1_000_000
ROUNDS = 3
WORKERS = (1, 2)
MEMORY_MAX_MB = 300
POLL_SECONDS = 0.02

Place = AbstractContextManager[str]
"""The address of an empty database, while it is needed."""


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure both databases; not quickly also the memory of ten times as many items."""
    count = QUICK if quick else FULL
    rounds = 1 if quick else ROUNDS
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        lines = hn_items.write(Path(folder) / "items.jsonl", count)
        rows = _compared(lines, f"ingest {count:,} on SQLite", rounds, lambda: _in_file(folder), hn_floor.sqlite)
        with postgres(folder) as server:
            rows += _compared(
                lines, f"ingest {count:,} on PostgreSQL", rounds, lambda: _in_database(server.url), hn_floor.postgres
            )
        if not quick:
            large = hn_items.write(Path(folder) / "large.jsonl", LARGE)
            with _in_file(folder) as address:
                rows.append(_memory(f"ingest {LARGE:,} on SQLite", measured(large, address, 2)))
    return rows


def _compared(
    lines: Path, what: str, rounds: int, place: Callable[[], Place], floor: Callable[[Path, str], float]
) -> list[dict[str, Any]]:
    """Measure the floor and ours in turns, because the machine changes its pace; return the median of each."""
    floors: list[float] = []
    passes: dict[int, list[dict[str, float]]] = {workers: [] for workers in WORKERS}
    for _ in range(rounds):
        with place() as address:
            floors.append(floor(lines, address))
        for workers in WORKERS:
            with place() as address:
                passes[workers].append(measured(lines, address, workers))
    rows = [_rate(f"{what}, {_named(w)}", _middle(each), statistics.median(floors)) for w, each in passes.items()]
    return [*rows, _memory(what, max(passes[WORKERS[-1]], key=lambda each: each["peak_mb"]))]


def _middle(passes: list[dict[str, float]]) -> dict[str, float]:
    return sorted(passes, key=lambda each: each["items_per_second"])[len(passes) // 2]


@contextmanager
def _in_file(folder: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        yield f"sqlite:///{place}/bench.db"


@contextmanager
def _in_database(url: str) -> Iterator[str]:
    """Create a database of its own on the server, and drop it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE ingest")
        try:
            yield url.replace("/postgres?", "/ingest?")
        finally:
            connection.execute("DROP DATABASE ingest WITH (FORCE)")


def measured(lines: Path, url: str, workers: int = 1) -> dict[str, float]:
    """Upload a file in one process while others work; return items a second, seconds and the largest peak memory."""
    from tidings.pipelines.hacker_news.body import PIPELINE

    store = _open(url)
    roles = [["upload", str(lines)], *(["work"] for _ in range(workers))]
    processes = [_process(url, *role) for role in roles]
    for process in processes:
        _hear(process)
    started = time.perf_counter()
    for process in processes:
        _tell(process)
    accepted = _hear(processes[0])["accepted"]
    uploaded = time.perf_counter()
    while not _is_done(store):
        time.sleep(POLL_SECONDS)
    ended = time.perf_counter()
    for process in processes[1:]:
        _tell(process)
    peaks = [_hear(process)["peak_mb"] for process in processes]
    for process in processes:
        process.wait()
    states = store.status_views.status().pipelines[PIPELINE].states
    store.database.close()
    assert states["completed"] == accepted, states
    return {
        "items_per_second": accepted / (ended - started),
        "upload_seconds": uploaded - started,
        "seconds": ended - started,
        "peak_mb": max(peaks),
    }


def _is_done(store: Any) -> bool:
    """Ask as little as possible: counting what waits would be work of its own."""
    with store.database.reading() as tx:
        rows = own_sql(
            tx,
            "SELECT 1 FROM checkpoints WHERE checkpoint = (SELECT max(id) FROM intake) "
            "AND NOT EXISTS (SELECT 1 FROM links WHERE relation = 'misplaced') "
            "AND NOT EXISTS (SELECT 1 FROM items WHERE lease_until IS NOT NULL)",
        )
    return bool(rows) and store.items.next_due_ms(["hacker_news"], ["pure"]) is None


def _process(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.hn_ingest", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    return cast("dict[str, Any]", json.loads(process.stdout.readline()))


def _open(url: str) -> Any:
    from tidings.pipelines import hacker_news
    from tidings.store.db.database import connect
    from tidings.store.store import open_store
    from tidings.store.upkeep.migrate import migrate

    pipeline = hacker_news.build(hacker_news.Settings())
    database = connect(url)
    migrate(database)
    return open_store(database, {pipeline.name: pipeline})


def upload(url: str, lines: Path) -> None:
    """Upload a file when told to, as the command line does."""
    from tidings.discover.upload import admit_lines, read_lines
    from tidings.pipelines import hacker_news

    store, pipeline = _open(url), hacker_news.build(hacker_news.Settings())
    admit = pipeline.admit
    assert admit is not None
    _say(ready=True)
    sys.stdin.readline()
    accepted = 0
    with lines.open("rb") as file:
        for findings, rejected, _ in admit_lines(read_lines(file), admit, "BULK"):
            assert not rejected
            accepted += store.intake.append(pipeline.name, findings).accepted
    _say(accepted=accepted)
    store.database.close()
    _say(peak_mb=_peak_mb())


async def work(url: str) -> None:
    """Work from when told to until told to stop, as a process of an installation does."""
    from tidings.app import App
    from tidings.pipelines import hacker_news
    from tidings.process.loops import run_loops
    from tidings.wiring import Wiring

    wiring = Wiring(database_url=url, pipelines=(hacker_news.build(hacker_news.Settings()),))
    async with App(wiring) as app:
        _say(ready=True)
        await asyncio.to_thread(sys.stdin.readline)
        stop = asyncio.Event()
        working = asyncio.create_task(run_loops([app.worker().run, app.hints.run], stop))
        await asyncio.to_thread(sys.stdin.readline)
        stop.set()
        await working
    _say(peak_mb=_peak_mb())


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _named(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"


def _rate(what: str, measured: dict[str, float], floor: float) -> dict[str, Any]:
    value = measured["items_per_second"]
    return {"what": what, "value": value, "unit": "items/s", "floor": floor, "ratio": value / floor}


def _memory(what: str, measured: dict[str, float]) -> dict[str, Any]:
    peak = measured["peak_mb"]
    return {
        "what": f"peak memory, {what}",
        "value": peak,
        "unit": "MB",
        "floor": MEMORY_MAX_MB,
        "ratio": peak / MEMORY_MAX_MB,
    }


if __name__ == "__main__":
    match sys.argv[1:]:
        case [address, "upload", file]:
            upload(address, Path(file))
        case [address, "work"]:
            asyncio.run(work(address))
        case options:
            for row in run(quick="--quick" in options):
                measure = f"{row['value']:12,.0f} {row['unit']:8s} of {row['floor']:12,.0f}: {row['ratio']:.2f}"
                print(f"{row['what']:45s}{measure}")
