"""The read-only API worker over Redis: how long 500 articles and one article take."""

from __future__ import annotations

import asyncio
import http.client
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.acceptance.test_mirrors import fill
from tests.support.environment import clean_environment
from tests.support.redis import a_redis

from bench.machine import cpu_seconds

ARTICLES = 500
ROUNDS = 2_000
LIST, ONE = "/api/v1/bitcoin_news/articles", "/api/v1/bitcoin_news/articles/a{:03}"


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure one client that asks over one connection."""
    if shutil.which("redis-server") is None:
        return [{"what": "API worker over Redis", "reason": "no redis-server is installed"}]
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder, a_redis(Path(folder)) as url:
        asyncio.run(fill(url, ARTICLES))
        log = Path(folder) / "log"
        with log.open("wb") as opened:
            worker = subprocess.Popen(
                [sys.executable, "-m", "tidings", "serve", "--from", url, "--port", "0", "--log-format", "json"],
                cwd=folder, env=clean_environment(), stderr=opened,
            )  # fmt: skip
        try:
            return _measured(_port(log), worker.pid, ROUNDS // 10 if quick else ROUNDS)
        finally:
            worker.terminate()
            worker.wait()


def _port(log: Path) -> int:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if b'"address":"http://' in (text := log.read_bytes()):
            return int(text.partition(b'"address":"http://')[2].partition(b'"')[0].rpartition(b":")[2])
        time.sleep(0.05)
    raise RuntimeError(log.read_text())


def _measured(port: int, pid: int, rounds: int) -> list[dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    rows: list[dict[str, Any]] = []
    cases = (
        (f"worker over Redis: list of {ARTICLES} articles", lambda _: LIST),
        ("worker over Redis: the list by a filter, each time another", lambda n: f"{LIST}?source=outlet-{n}"),
        ("worker over Redis: one article, each time another", lambda n: ONE.format(n % ARTICLES)),
    )
    for what, path_of in cases:
        cpu = cpu_seconds(pid, with_ended=False)
        times = [_seconds(connection, path_of(number)) * 1000 for number in range(rounds)]
        cuts = statistics.quantiles(times, n=100)
        rows.append({"what": f"{what}, p50", "value": cuts[49], "unit": "ms"})
        rows.append({"what": f"{what}, p99", "value": cuts[98], "unit": "ms"})
        spent = (cpu_seconds(pid, with_ended=False) - cpu) * 1000 / rounds
        rows.append({"what": f"{what}, processor time of the worker for each", "value": spent, "unit": "ms"})
    return rows


def _seconds(connection: http.client.HTTPConnection, path: str) -> float:
    started = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status}")
    return time.perf_counter() - started
