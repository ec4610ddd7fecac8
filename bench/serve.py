"""The hot reads under load beside a raw ASGI application that sends the same bytes; every page over a full store.

Each server runs in a process of its own, started as a program by this module; both are loaded in turns in one run.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import hn_items

ARTICLES = 500
QUICK_ITEMS, ITEMS = 3_000, 100_000
CONNECTIONS, ROUNDS = 16, 3
LIST, ONE = "/api/v1/bitcoin_news/articles", "/api/v1/bitcoin_news/articles/a1"
PAGE_MS_MAX = 100
PAGES = (
    "/",
    "/items",
    "/items?pipeline=hacker_news&state=completed",
    "/pipelines/hacker_news/items",
    "/pipelines/hacker_news/items?type=comment",
    "/pipelines/bitcoin_news/articles",
    "/workflows/hacker_news",
    "/sources",
    "/dead-letters",
    "/deliveries",
    "/alerts",
    "/docs",
    "/feeds/hacker_news.atom?q=type:story",
    "/api/v1/status",
    "/api/v1/hacker_news/items",
)
SENTENCE = "The backlog stood at 312,000 transactions when we went to bed and at 340,000 when we got up this morning. "


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure the hot reads, then every page with many items in the store."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        database = f"sqlite:///{folder}/tidings.db"
        _fill(Path(folder), database, QUICK_ITEMS if quick else ITEMS)
        with server("ours", database) as ours:
            bodies = [_get(ours, path)[1] for path in (LIST, ONE)]
            saved = [Path(folder) / "list.json", Path(folder) / "one.json"]
            for path, body in zip(saved, bodies, strict=True):
                path.write_bytes(body)
            with server("raw", *map(str, saved)) as raw:
                rows = _load(ours, raw, quick)
            rows += _pages(ours, quick)
    return rows


def _load(ours: int, raw: int, quick: bool) -> list[dict[str, Any]]:
    seconds = 1 if quick else 4
    rows: list[dict[str, Any]] = []
    for what, path in ((f"list of {ARTICLES} articles", LIST), ("one article", ONE)):
        rounds = [(load(ours, path, seconds), load(raw, path, seconds)) for _ in range(1 if quick else ROUNDS)]
        best, floor = max(r[0] for r in rounds), max(r[1] for r in rounds)
        rows.append(_row(f"{what}, {CONNECTIONS} connections", best[0], "req/s", floor[0], best[0] / floor[0]))
        rows.append(_row(f"{what}, p50", best[1], "ms", floor[1], None))
        rows.append(_row(f"{what}, p99", best[2], "ms", floor[2], None))
    return rows


def _pages(port: int, quick: bool) -> list[dict[str, Any]]:
    rows = []
    story = json.loads(_get(port, "/api/v1/hacker_news/items?type=story&limit=1")[1])["items"][0]
    word = max(re.findall(r"\w+", story["title"]), key=len)
    more = (
        f"/pipelines/hacker_news/items/{story['id']}",
        "/pipelines/bitcoin_news/articles/a1",
        f"/search?q={word}",
        f"/search?q={word}+type:comment",
    )
    for path in (*PAGES, *more):
        _get(port, path)  # Templates are compiled when first used.
        times = []
        for _ in range(5 if quick else 20):
            started = time.perf_counter()
            status, _body = _get(port, path)
            times.append((time.perf_counter() - started) * 1000)
            assert status == 200, f"{path}: {status}"
        slow = statistics.quantiles(times, n=20)[-1]
        rows.append(_row(f"page {path}, p95", slow, "ms", PAGE_MS_MAX, slow / PAGE_MS_MAX))
    return rows


def _row(what: str, value: float, unit: str, floor: float, ratio: float | None) -> dict[str, Any]:
    return {"what": what, "value": value, "unit": unit, "floor": floor, "ratio": ratio}


def _get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Accept": "text/html"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def load(port: int, path: str, seconds: int) -> tuple[float, float, float]:
    """Load one address from 16 connections; return requests a second, p50 and p99 in milliseconds."""
    url = f"http://127.0.0.1:{port}{path}"
    if shutil.which("wrk") is None:
        return asyncio.run(_load_by_hand(port, path, seconds))
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", url]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "Non-2xx" not in told, told
    rate = re.search(r"Requests/sec:\s+([\d.]+)", told)
    middle, high = re.search(r"50%\s+([\d.]+)(us|ms|s)", told), re.search(r"99%\s+([\d.]+)(us|ms|s)", told)
    assert rate is not None
    assert middle is not None
    assert high is not None
    return float(rate[1]), _ms(middle), _ms(high)


def _ms(found: re.Match[str]) -> float:
    return float(found[1]) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[found[2]]


async def _load_by_hand(port: int, path: str, seconds: int) -> tuple[float, float, float]:
    """Stand in for wrk where it is missing: slower, but the same for both servers."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        while (started := time.perf_counter()) < end:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            assert length is not None
            await reader.readexactly(int(length[1]))
            times.append((time.perf_counter() - started) * 1000)
        writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    cuts = statistics.quantiles(times, n=100)
    return len(times) / seconds, cuts[49], cuts[98]


@contextlib.contextmanager
def server(*arguments: str) -> Iterator[int]:
    """Start this module as a program that serves; yield its port."""
    process = subprocess.Popen([sys.executable, "-m", "bench.serve", *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)


def _fill(folder: Path, database: str, items: int) -> None:
    """Put items through the whole workflow, and articles on the shelf as the merge does."""
    from bench.hn_ingest import measured

    measured(hn_items.write(folder / "items.jsonl", items), database)
    asyncio.run(_publish_articles(database))


async def _publish_articles(database: str) -> None:
    import msgspec

    from tidings.app import App
    from tidings.model.item import Finding
    from tidings.pipelines.bitcoin_news.body import Article

    async with App(_wiring(database)) as app:
        now = app.store.now_ms()
        findings = []
        for number in range(ARTICLES):
            article = Article(
                id=f"a{number}",
                title=f"Headline {number}: miners move north for the second winter running",
                link=f"https://news.example/{number}",
                source="The Ledger Post",
                published_ms=now - number * 60_000,
                found_ms=now,
                description=SENTENCE * 3,
                author="Ines Corvo",
            )
            findings.append(Finding("bitcoin_news", "article", article.id, str(number), msgspec.json.encode(article)))
        app.store.intake.append("bitcoin_news", findings)
        while app.store.intake.unmerged("bitcoin_news"):
            app.store.intake.merge("bitcoin_news")


def _wiring(database: str) -> Any:
    from tidings.pipelines import bitcoin_news, hacker_news
    from tidings.wiring import Wiring

    news = bitcoin_news.build(bitcoin_news.Settings(feeds=()))
    stories = hacker_news.build(hacker_news.Settings())
    return Wiring(database_url=database, pipelines=(stories, news))


async def _serve_ours(database: str) -> None:
    from tidings.app import App
    from tidings.backends import backend_of
    from tidings.config import Server
    from tidings.serve.application import build

    async with App(_wiring(database)) as app:
        await app.poller.declare()
        await _serve(build(backend_of(app, Server().model_dump(), loopback=True)))


async def _serve_raw(bodies: dict[str, bytes]) -> None:

    async def application(scope: Any, _receive: Any, send: Any) -> None:
        body = bodies[scope["path"]]
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    await _serve(application)


async def _serve(application: Any) -> None:
    import socket

    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(application, log_level="error", access_log=False, lifespan="off", server_header=False)
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    import uvloop

    if sys.argv[1:2] == ["ours"]:
        uvloop.run(_serve_ours(sys.argv[2]))
    elif sys.argv[1:2] == ["raw"]:
        uvloop.run(
            _serve_raw({path: Path(name).read_bytes() for path, name in zip((LIST, ONE), sys.argv[2:], strict=True)})
        )
    else:
        for row in run(quick="--quick" in sys.argv):
            ratio = f"{row['ratio']:.2f}" if row["ratio"] is not None else ""
            print(f"{row['what']:60s}{row['value']:10,.1f} {row['unit']:6s} beside {row['floor']:10,.1f}  {ratio}")
