"""Clients that are still sending when they are refused, and requests that cannot be read: by real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.serve.http.site import WAIT_SECONDS, Site, Streams, a_site, ended, status_of
from tests.unit.serve.world import World

from tidings.serve.application import build
from tidings.serve.backend import UploadLimits
from tidings.serve.http.unread_bodies import Patience, UnreadBody

BULK = "/api/v1/hacker_news/items/bulk"
LIMITS = UploadLimits(bulk_bytes_max=100_000, body_seconds_max=60)
TOO_LARGE = 20 << 20


@pytest.fixture
async def site(world: World) -> AsyncIterator[Site]:
    async with a_site(build(world.backend(limits=LIMITS)), farewell_seconds=20) as site:
        yield site


def head(*more: str, token: str = "sender", path: str = BULK) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}", *more]
    return "\r\n".join([*lines, "Content-Type: application/json", "", ""]).encode()


async def answer_of(streams: Streams) -> tuple[int, dict[str, str], Any]:
    """Read one answer whole."""
    reader, _ = streams
    async with asyncio.timeout(WAIT_SECONDS):
        status = int((await reader.readline()).split()[1])
        headers: dict[str, str] = {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return status, headers, json.loads(await reader.readexactly(int(headers["content-length"])))


async def send_slowly(streams: Streams, size: int) -> None:
    _, writer = streams
    for _ in range(0, size, 64 << 10):
        writer.write(b"x" * (64 << 10))
        await writer.drain()


def by_http_client(port: int, headers: dict[str, str], body: Any) -> tuple[int, Any]:
    """Send all of the body before reading anything, as most clients do."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    with contextlib.closing(connection):
        sent = {"Content-Type": "application/json", "Authorization": "Bearer sender", **headers}
        connection.request("POST", BULK, body, sent)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


async def test_a_413_is_read_by_a_client_that_first_sends_everything(site: Site) -> None:
    status, problem = await asyncio.to_thread(by_http_client, site.port, {}, b"x" * TOO_LARGE)

    assert status == 413
    assert problem["detail"] == "The body is larger than 100,000 bytes."


async def test_a_413_is_read_where_the_length_is_not_told(site: Site) -> None:
    chunks = (b"x" * 65_536 for _ in range(TOO_LARGE // 65_536))
    status, problem = await asyncio.to_thread(by_http_client, site.port, {}, chunks)

    assert (status, problem["type"]) == (413, "urn:tidings:problem:too-large")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [({"Authorization": "Bearer nobody"}, 401), ({"Content-Type": "text/plain"}, 415), ({"Host": "elsewhere"}, 400)],
)
async def test_every_refusal_is_read_by_a_client_that_first_sends_everything(
    site: Site, headers: dict[str, str], expected: int
) -> None:
    status, problem = await asyncio.to_thread(by_http_client, site.port, headers, b"x" * TOO_LARGE)

    assert status == expected
    assert problem["detail"]


async def test_a_slow_client_is_told_before_it_has_sent_everything(site: Site) -> None:
    streams = await site.connect(head(f"Content-Length: {TOO_LARGE}"))
    status, headers, _ = await answer_of(streams)

    assert (status, headers["connection"]) == (413, "close")
    await send_slowly(streams, TOO_LARGE)
    assert await asyncio.wait_for(streams[0].read(), WAIT_SECONDS) == b"", "no second answer, and no reset"


async def test_whoever_asks_before_sending_is_refused_at_once_and_never_told_to_go_on(site: Site) -> None:
    streams = await site.connect(head(f"Content-Length: {TOO_LARGE}", "Expect: 100-continue"))
    status, _, problem = await answer_of(streams)

    assert (status, problem["status"]) == (413, 413)
    streams[1].write_eof()
    assert await asyncio.wait_for(streams[0].read(), WAIT_SECONDS) == b""


async def test_whoever_asks_before_sending_is_told_to_go_on(site: Site) -> None:
    body = json.dumps([{"id": 5}]).encode()
    reader, writer = await site.connect(head(f"Content-Length: {len(body)}", "Expect: 100-continue"))
    assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_SECONDS) == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(body)
    status, _, receipt = await answer_of((reader, writer))

    assert (status, receipt["accepted"]) == (202, 1)


async def test_a_refused_small_body_costs_no_connection(site: Site) -> None:
    body = b'{"id": 5}'
    streams = await site.connect(head(f"Content-Length: {len(body)}", token="nobody") + body)
    status, headers, _ = await answer_of(streams)
    assert (status, "connection" in headers) == (401, False)

    streams[1].write(head("Content-Length: 11") + b"[" + body + b"]")
    assert (await answer_of(streams))[0] == 202


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        (b"GARBAGE\r\n\r\n", "The request line names no method of HTTP."),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "The request line names no method of HTTP."),
        (b"GET / HTTP/9.9\r\n\r\n", "This is not a request of HTTP/1.1."),
        (b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", "This is not a request of HTTP/1.1."),
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", "The request line holds no readable address."),
        (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", "The request line holds no readable address."),
        (b"GET / HTTP/1.1\r\nBad Header\r\n\r\n", "The headers cannot be read."),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n", "The headers cannot be read."),
        (head("Content-Length: x"), "The headers cannot be read."),
        (head("Content-Length: 1", "Content-Length: 2"), "The headers cannot be read."),
        (head("Content-Length: 1", "Transfer-Encoding: chunked"), "The headers cannot be read."),
        (head("Transfer-Encoding: chunked") + b"ZZ\r\n", "The chunks of the body cannot be read."),
        (head("Transfer-Encoding: chunked") + b"1\r\nabc\r\n", "The chunks of the body cannot be read."),
        (head("Transfer-Encoding: chunked") + b"f" * 20 + b"\r\n", "The chunks of the body cannot be read."),
    ],
)
async def test_what_cannot_be_parsed_is_answered_with_a_problem(site: Site, sent: bytes, what: str) -> None:
    streams = await site.connect(sent)
    status, headers, problem = await answer_of(streams)

    assert (status, headers["content-type"], headers["connection"]) == (400, "application/problem+json", "close")
    assert problem["detail"] == what
    assert problem["help"]
    streams[1].write(b"and more" * 1_000)
    streams[1].write_eof()
    assert await asyncio.wait_for(streams[0].read(), WAIT_SECONDS) == b""


async def test_options_tell_what_every_route_takes(site: Site, world: World) -> None:
    application = build(world.backend())
    for operation in application.operations:
        path = operation.path.replace("{id:path}", "1").replace("{", "").replace("}", "")
        reader, _ = await site.connect(
            f"OPTIONS {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        answer = (await asyncio.wait_for(reader.read(), WAIT_SECONDS)).decode()
        assert answer.startswith("HTTP/1.1 204 "), operation.path
        allowed = answer.lower().partition("\r\nallow: ")[2].partition("\r\n")[0].upper()
        assert {"OPTIONS", operation.method} <= set(allowed.split(", ")), operation.path


async def test_compressed_bodies_are_bounded_by_what_they_unpack_to(site: Site) -> None:
    empty, one = gzip.compress(b""), gzip.compress(b'[{"id": 5}]')
    bombs = {
        "a bomb": (gzip.compress(b" " * (50 << 20)), 413),
        "a bomb behind a harmless member": (one + gzip.compress(b" " * (50 << 20)), 413),
        "cut off": (one[:-3], 400),
        "damaged": (one[:-8] + b"12345678", 400),
        "followed by something else": (one + b"more", 400),
        "not gzip": (b'[{"id": 5}]', 400),
        "many members": (empty * 2_000 + one + empty * 2_000, 202),
    }
    for name, (body, expected) in bombs.items():
        status, said = await asyncio.to_thread(by_http_client, site.port, {"Content-Encoding": "gzip"}, body)
        assert status == expected, (name, said)
    for coding in ("br", "gzip, gzip", "deflate"):
        assert (await asyncio.to_thread(by_http_client, site.port, {"Content-Encoding": coding}, one))[0] == 415
    status, said = await asyncio.to_thread(by_http_client, site.port, {}, one)
    assert status in (202, 400)
    assert "rejected" in said or "detail" in said


@pytest.mark.parametrize("patience", [Patience(silence_seconds=20, seconds_max=0.3), Patience(0.3, 20)])
async def test_a_client_that_never_comes_to_an_end_is_left(patience: Patience) -> None:
    async with a_site(Refusal(patience)) as site:
        reader, writer = await site.connect(head(f"Content-Length: {1 << 40}"))
        assert await status_of(reader) == 413
        await reader.readuntil(b"\r\n\r\nno")
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(WAIT_SECONDS):
                while patience.silence_seconds > 1:
                    await send_slowly((reader, writer), 64 << 10)
        assert await ended(reader) == b""


class Refusal:
    """Refuses whatever comes, unread."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        body = UnreadBody(receive, send, is_small=False, patience=self._patience)
        await body.send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"2")]})
        await body.send({"type": "http.response.body", "body": b"no"})
