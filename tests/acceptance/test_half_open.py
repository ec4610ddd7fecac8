"""A real server under 1,500 connections that never finish asking: they are dropped, and people are answered."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.support.processes import Running, fleet, free_port
from tests.support.waiting import until

HALF_OPEN = 1_500
HEADER_SECONDS = 4
PARTS = (b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: op")

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def files() -> Iterator[None]:
    """Let this process open as many sockets as it needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = HALF_OPEN + 500
    if soft < needed:
        if hard < needed:
            pytest.skip(f"this user may open {hard} files only")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_half_open_requests_are_dropped_and_people_are_answered(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "tidings.toml").write_text("[pipelines.hacker_news]\nbase_url = 'http://127.0.0.1:1/v0'\n")
    environment = {"TIDINGS_SERVER__PORT": str(port), "TIDINGS_SERVER__HEADER_SECONDS": str(HEADER_SECONDS)}
    async with fleet(tmp_path) as processes:
        server = await processes.start("run", "--role", "serve", **environment)
        await until(lambda: server.has_started, watching=(server,))
        before = open_sockets(server)
        with contextlib.ExitStack() as held:
            halves = [held.enter_context(socket.create_connection(("127.0.0.1", port), 30)) for _ in range(HALF_OPEN)]
            for number, each in enumerate(halves):
                with contextlib.suppress(OSError):  # it may have made room already
                    each.sendall(PARTS[number % len(PARTS)])
            loris = asyncio.create_task(trickle(port))
            answered = [await asyncio.to_thread(asked, port, path) for path in ("/healthz", "/", "/api/v1/status") * 5]
            assert answered == [200] * 15
            assert await asyncio.to_thread(opened_at_most, server) <= before + 1_100
            assert HEADER_SECONDS - 1 < await loris < HEADER_SECONDS + 60
            await until(lambda: open_sockets(server) <= before + 10, seconds=60, watching=(server,))
        assert await asyncio.to_thread(asked, port, "/healthz") == 200
        assert await server.stop() == 0


def asked(port: int, path: str) -> int:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return int(answer.status)


def open_sockets(server: Running) -> int:
    links = (file.readlink() for file in Path(f"/proc/{server.pid}/fd").iterdir())
    with contextlib.suppress(FileNotFoundError):  # closed while we look
        return sum(str(link).startswith("socket:") for link in links)
    return open_sockets(server)


def opened_at_most(server: Running) -> int:
    return max(open_sockets(server) for _ in range(5))


async def trickle(port: int) -> float:
    """Send a byte of a header every now and then; return after how many seconds the server had enough."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started = time.monotonic()
    writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
    ending = asyncio.create_task(reader.read())
    while not ending.done():
        writer.write(b"a")
        await asyncio.sleep(0.1)
    with contextlib.suppress(ConnectionError):
        await ending
    writer.close()
    return time.monotonic() - started
