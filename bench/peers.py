"""Other job queues on the same work: three trivial durable stages, payloads of 1 KB, the queue filled beforehand.

Each runs in a process of its own with the settings its documentation suggests for speed. A peer that is not installed
or fails is a row with the reason.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import engine_floor
from bench.engine import BATCH, payloads
from bench.machine import Server, postgres

QUICK, FULL = 300, 3_000
SLOW_FULL = 600
"""For the peers that make a hundred items a second."""
SECONDS_MAX = 300
STAGES = 3


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure every peer beside the floor of its database."""
    count = QUICK if quick else FULL
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder, postgres(folder) as server:
        floors = _floors(Path(folder), server, 4_000)
        for name, database in PEERS:
            some = min(count, SLOW_FULL) if name in SLOW else count
            url = server.new_database() if database == "PostgreSQL" else f"{folder}/{name}.db"
            rows += _row(name, database, url, some, floors[database], server if database == "PostgreSQL" else None)
    return rows


def _floors(folder: Path, server: Server, count: int) -> dict[str, float]:
    lite = engine_floor.sqlite(folder / "floor.db", payloads(count), BATCH, "FULL")
    url = server.new_database()
    engine_floor.fill_postgres(url, payloads(count))
    return {
        "SQLite": count / lite["seconds"],
        "PostgreSQL": count / engine_floor.empty_postgres(url, BATCH)["seconds"],
    }


def _row(name: str, database: str, url: str, count: int, floor: float, server: Server | None) -> list[dict[str, Any]]:
    what = f"three stages by {name} on {database}"
    before = server.cpu_seconds() if server else 0.0
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "bench.peers", name, url, str(count)],
            capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
        )  # fmt: skip
        measured = json.loads(answer.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return [{"what": what, "reason": f"not done within {SECONDS_MAX} s"}]
    except (IndexError, ValueError):
        return [{"what": what, "reason": (answer.stderr.strip().splitlines() or ["no answer"])[-1]}]
    of_server = server.cpu_seconds() - before if server else 0.0
    rate, cpu = count / measured["seconds"], (measured["cpu"] + of_server) / count * 1000
    return [
        {"what": what, "value": rate, "unit": "items/s", "floor": floor, "ratio": rate / floor},
        {"what": f"CPU, {what}", "value": cpu, "unit": "ms an item", "floor": None, "ratio": None},
    ]


class Tally:
    """Counts what came through the last stage."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._lock = threading.Lock()
        self.done = threading.Event()

    def finish(self) -> None:
        """Count one item."""
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self.done.set()


Started = Callable[[], None]


def huey(url: str, texts: list[str], started: Started) -> None:
    """One consumer thread; a task that raises is gone, so this is at most once."""
    import apsw
    from huey import SqliteHuey

    apsw.Connection(url).execute("PRAGMA journal_mode = WAL")
    queue = SqliteHuey(filename=url, results=False, fsync=True)
    tally = Tally(len(texts))

    @queue.task()
    def stage(number: int, text: str) -> None:
        if number == STAGES:
            tally.finish()
        else:
            stage(number + 1, text)

    for text in texts:
        stage(1, text)
    consumer = queue.create_consumer(workers=1, periodic=False, initial_delay=0.001, max_delay=0.01, backoff=1.0)
    started()
    consumer.start()
    tally.done.wait(SECONDS_MAX)
    consumer.stop()


def procrastinate(url: str, texts: list[str], started: Started) -> None:
    """One worker with ten jobs at once."""
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url))

    @app.task(name="stage")
    async def stage(number: int, text: str) -> None:
        if number < STAGES:
            await stage.defer_async(number=number + 1, text=text)

    async def work() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            await stage.batch_defer_async(*({"number": 1, "text": text} for text in texts))
            started()
            await app.run_worker_async(concurrency=10, wait=False, install_signal_handlers=False, delete_jobs="always")

    asyncio.run(work())


def pgqueuer(url: str, texts: list[str], started: Started) -> None:
    """One worker taking a hundred jobs at a time, until the queue is empty."""
    import psycopg
    from pgqueuer import PgQueuer, PsycopgDriver
    from pgqueuer.models import Job
    from pgqueuer.queries import Queries
    from pgqueuer.types import QueueExecutionMode

    async def work() -> None:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        driver = PsycopgDriver(connection)
        queries = Queries(driver)
        await queries.install()
        queuer = PgQueuer(driver)

        for number in range(1, STAGES + 1):
            queuer.entrypoint(f"stage{number}")(_stage_of(queries, number))
        await queries.enqueue(["stage1"] * len(texts), [text.encode() for text in texts], [0] * len(texts))
        started()
        await queuer.run(batch_size=100, mode=QueueExecutionMode.drain)
        await connection.close()

    def _stage_of(queries: Any, number: int) -> Any:
        async def stage(job: Job) -> None:
            if number < STAGES:
                await queries.enqueue(f"stage{number + 1}", job.payload, 0)

        return stage

    asyncio.run(work())


def dbos(url: str, texts: list[str], started: Started) -> None:
    """Workflows of three steps, eight at once."""
    from concurrent.futures import ThreadPoolExecutor

    from dbos import DBOS

    address = url if url.startswith("postgres") else f"sqlite:///{url}"
    if not url.startswith("postgres"):
        import apsw

        apsw.Connection(url).execute("PRAGMA journal_mode = WAL")
    DBOS(config={"name": "bench", "system_database_url": address, "log_level": "ERROR", "run_admin_server": False})

    @DBOS.step()
    def stage(number: int, text: str) -> str:
        return text

    @DBOS.workflow()
    def pipeline(text: str) -> None:
        for number in range(STAGES):
            text = stage(number, text)

    DBOS.launch()
    started()
    with ThreadPoolExecutor(8 if url.startswith("postgres") else 1) as pool:
        list(pool.map(pipeline, texts))
    DBOS.destroy()


PEERS = (
    ("huey", "SQLite"),
    ("dbos", "SQLite"),
    ("procrastinate", "PostgreSQL"),
    ("pgqueuer", "PostgreSQL"),
    ("dbos", "PostgreSQL"),
)
SLOW = frozenset({"dbos", "procrastinate"})


def main() -> None:
    """Fill one peer's queue, empty it, and tell how long that took."""
    name, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    texts = [payload.decode() for payload in payloads(count)]
    begun: list[float] = []

    def started() -> None:
        begun[:] = [time.perf_counter(), time.process_time()]

    {"huey": huey, "procrastinate": procrastinate, "pgqueuer": pgqueuer, "dbos": dbos}[name](url, texts, started)
    seconds, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
    print(json.dumps({"seconds": seconds, "cpu": cpu}), flush=True)


if __name__ == "__main__":
    main()
