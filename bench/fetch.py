"""Pages fetched and extracted per second of one core, beside the bare client and the bare extractor.

The server runs in a process of its own, so that only our work is counted: CPU seconds of this process and of the
extraction child. Those survive a busy machine; wall time does not.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypedDict

import aiohttp

from tidings.net.client import Web
from tidings.process.extract.extractor import ChildExtractor

CONCURRENCY = 50
PAGE_BYTES = 50_000
WORDS = """market price network bitcoin report morning analyst fund exchange holder miner fee block growth record week
month euro energy policy bank central rate the a of in and to with after before while because against under over again
"""


class Row(TypedDict):
    what: str
    value: float
    unit: str
    floor: float | None
    ratio: float | None


def run(quick: bool) -> list[Row]:
    """Measure everything once; `quick` takes a few seconds."""
    return asyncio.run(_measure(pages=600 if quick else 4_000, extracts=150 if quick else 1_000))


async def _measure(pages: int, extracts: int) -> list[Row]:
    page = a_page()
    async with a_server() as port:
        url = f"http://127.0.0.1:{port}/page"
        async with aiohttp.ClientSession() as bare:
            bare_fetch = await per_cpu_second(pages, lambda n: _bare_get(bare, f"{url}?{n}"))
        web = Web(
            user_agent="tidings/bench",
            loopback_allowed=frozenset({("127.0.0.1", port)}),
            per_host_concurrency=CONCURRENCY,
            per_host_delay_seconds=0.0,
        )
        bare_extract = _bare_extracts_per_cpu_second(page, extracts)
        async with web, ChildExtractor(pages_per_child=1_000_000) as extractor:
            await extractor.extract(page, url)
            child = extractor.child_pids()[0]
            fetch = await per_cpu_second(pages, lambda n: web.page(f"{url}?{n}"))
            extract = await per_cpu_second(extracts, lambda n: extractor.extract(page, f"{url}?{n}"), child)

            async def both(n: int) -> None:
                response = await web.page(f"{url}?{n}")
                await extractor.extract(response.body, response.url)

            whole = await per_cpu_second(extracts, both, child)
    floor = 1 / (1 / bare_fetch + 1 / bare_extract)
    return [
        row("fetch a 50 KB page (guarded, polite) vs bare aiohttp", fetch, bare_fetch),
        row("extract it in the child vs bare trafilatura", extract, bare_extract),
        row("fetch and extract vs both bare", whole, floor),
    ]


def row(what: str, value: float, floor: float) -> Row:
    return Row(what=what, value=value, unit="pages per CPU second", floor=floor, ratio=value / floor)


async def per_cpu_second(times: int, work: Callable[[int], Awaitable[object]], child: int | None = None) -> float:
    """Do the work `times` times, CONCURRENCY at once, and count it against CPU seconds (ours and the child's)."""
    numbers = iter(range(times))

    async def worker() -> None:
        for n in numbers:
            await work(n)

    started = _cpu_seconds(child)
    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
    return times / (_cpu_seconds(child) - started)


def _cpu_seconds(child: int | None) -> float:
    ours = time.process_time()
    if child is None:
        return ours
    with open(f"/proc/{child}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return ours + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _bare_get(session: aiohttp.ClientSession, url: str) -> bytes:
    async with session.get(url) as response:
        return await response.read()


def _bare_extracts_per_cpu_second(page: bytes, times: int) -> float:
    import trafilatura

    text = page.decode()
    trafilatura.bare_extraction(text, with_metadata=True)
    started = time.process_time()
    for _ in range(times):
        trafilatura.bare_extraction(text, include_comments=False, with_metadata=True)
    return times / (time.process_time() - started)


def a_page() -> bytes:
    """Write an article of the usual weight: navigation, scripts, paragraphs, related links, footer."""
    rng, words = random.Random(7), WORDS.split()

    def sentence() -> str:
        return " ".join(rng.choices(words, k=rng.randint(8, 20))).capitalize() + "."

    def paragraph() -> str:
        return "<p>" + " ".join(sentence() for _ in range(4)) + "</p>"

    menu = "".join(f'<li><a href="/s/{n}">{sentence()[:20]}</a></li>' for n in range(60))
    body = "".join(paragraph() for _ in range(14))
    related = "".join(f'<div class="teaser"><a href="/r/{n}"><h3>{sentence()}</h3></a></div>' for n in range(40))
    head = '<meta property="article:published_time" content="2026-03-02"><meta name="author" content="Jane Doe">'
    html = (
        f"<html lang=en><head><title>{sentence()}</title>{head}</head><body><nav><ul>{menu}</ul></nav>"
        f"<article><h1>{sentence()}</h1>{body}</article><aside>{related}</aside><footer>{sentence()}</footer>"
    )
    filler = "<script>" + "var x = 'track'; " * ((PAGE_BYTES - len(html)) // 17) + "</script>"
    return f"{html}{filler}</body></html>".encode()


@asynccontextmanager
async def a_server() -> AsyncIterator[int]:
    """Serve the page from another process; yield its port."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.fetch", "serve", stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.communicate()


class _Always(asyncio.Protocol):
    """Answers every request with the page."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        if data.startswith(b"GET /robots.txt"):
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        else:
            self._transport.write(self._answer)


async def _serve() -> None:
    page = a_page()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n\r\n"
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Always(head.encode() + page), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(_serve())
    for line in run(quick="--quick" in sys.argv):
        print(
            f"{line['what']:<55} {line['value']:>8.1f} {line['unit']}, floor {line['floor']:.1f}, {line['ratio']:.2f}"
        )
