"""A web server on loopback that breaks the rules on purpose: one path for each way other people's servers fail us.

It speaks raw TCP, since no decent server library would send what it sends. `seen` records what arrived.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import socket
import ssl
import struct
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from urllib.parse import unquote

MIB = 1024 * 1024
PAGE = "<html><head><title>Tidings</title></head><body><article><p>All is well.</p></article></body></html>"


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Behavior = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]
_BEHAVIORS: dict[str, Behavior] = {}


def behavior(name: str) -> Callable[[Behavior], Behavior]:
    """Register what happens below `/<name>`."""

    def register(function: Behavior) -> Behavior:
        _BEHAVIORS[name] = function
        return function

    return register


class MisbehavingWeb:
    """The server; an async context manager. Runs with TLS if given a context."""

    def __init__(
        self, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, robots: bytes | None = None
    ) -> None:
        self.host = host
        self.port = 0
        self.robots = robots
        self.seen: list[Seen] = []
        self.most_at_once = 0
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def origin(self) -> str:
        """Scheme, host and port, for building addresses."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    async def __aenter__(self) -> MisbehavingWeb:
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=self._tls, limit=MIB)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        self.most_at_once = max(self.most_at_once, len(self._tasks))
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing() and (request := await _read_request(reader)) is not None:
                self.seen.append(request)
                await _while_connected(reader, self._answer(request, writer))
                await writer.drain()
        except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError, TimeoutError):
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, request: Seen, writer: asyncio.StreamWriter) -> None:
        name = request.path.partition("?")[0].split("/")[1]
        if name == "robots.txt":
            body = self.robots
            writer.write(reply(404) if body is None else reply(200, body, {"content-type": "text/plain"}))
            return
        await _BEHAVIORS.get(name, _not_found)(request, writer)


def reply(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Write a decent answer."""
    sent = {"content-type": "text/html; charset=utf-8", "content-length": str(len(body)), **(headers or {})}
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in sent.items())]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


async def _while_connected(reader: asyncio.StreamReader, answering: Coroutine[None, None, None]) -> None:
    """Answer, but stop when the client has left; some answers would take forever."""
    task = asyncio.ensure_future(answering)
    try:
        while not (await asyncio.wait({task}, timeout=0.05))[0]:
            if reader.at_eof():
                raise ConnectionResetError
        await task
    finally:
        task.cancel()


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split(" ", 2)
    return Seen(method, path, headers, body)


def _argument(request: Seen, place: int = 2) -> str:
    segments = request.path.partition("?")[0].split("/")
    return unquote(segments[place]) if len(segments) > place else ""


def _reset(writer: asyncio.StreamWriter) -> None:
    """End the connection with a reset instead of a goodbye."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _forever(writer: asyncio.StreamWriter, piece: bytes, pause_seconds: float = 0.0) -> None:
    while not writer.is_closing():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause_seconds)


async def _not_found(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(404, b"nothing here"))


# Decent answers


@behavior("page")
async def _page(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, PAGE.encode()))


@behavior("echo")
async def _echo(request: Seen, writer: asyncio.StreamWriter) -> None:
    answer = {"method": request.method, "path": request.path, "headers": dict(request.headers)}
    answer["body"] = request.body.decode("utf-8", "replace")
    writer.write(reply(200, json.dumps(answer).encode(), {"content-type": "application/json"}))


@behavior("with-etag")
async def _with_etag(request: Seen, writer: asyncio.StreamWriter) -> None:
    if request.headers.get("if-none-match") == '"1"':
        writer.write(b'HTTP/1.1 304 Not Modified\r\netag: "1"\r\nx-ratelimit-remaining: 7\r\n\r\n')
    else:
        writer.write(reply(200, PAGE.encode(), {"etag": '"1"'}))


@behavior("cookie")
async def _cookie(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, PAGE.encode(), {"set-cookie": "track=me; path=/"}))


@behavior("type")
async def _type(request: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, PAGE.encode(), {"content-type": _argument(request)}))


@behavior("gzip")
async def _gzip(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, gzip.compress(PAGE.encode()), {"content-encoding": "gzip"}))


@behavior("gzip-members")
async def _gzip_members(_: Seen, writer: asyncio.StreamWriter) -> None:
    halves = gzip.compress(PAGE[:20].encode()) + gzip.compress(PAGE[20:].encode()) + b"padding"
    writer.write(reply(200, halves, {"content-encoding": "gzip"}))


@behavior("deflate")
async def _deflate(request: Seen, writer: asyncio.StreamWriter) -> None:
    raw = _argument(request) == "raw"
    engine = zlib.compressobj(wbits=-15 if raw else 15)
    body = engine.compress(PAGE.encode()) + engine.flush()
    writer.write(reply(200, body, {"content-encoding": "deflate"}))


# Statuses


@behavior("status")
async def _status(request: Seen, writer: asyncio.StreamWriter) -> None:
    """`/status/<code>/<Retry-After>`."""
    code, wait = int(_argument(request)), _argument(request, 3)
    writer.write(reply(code, b"" if code in (204, 304) else b"sorry", {"retry-after": wait} if wait else {}))


@behavior("rate-limit")
async def _rate_limit(request: Seen, writer: asyncio.StreamWriter) -> None:
    """Say 429 as Discord does (`float`, `global`) or as a proxy in front of it does (`html`)."""
    kind = _argument(request)
    if kind == "html":
        writer.write(reply(429, b"<html>error code: 1015</html>", {"retry-after": "12"}))
        return
    answer = {"message": "You are being rate limited.", "retry_after": 0.65, "global": kind == "global"}
    headers = {"content-type": "application/json", "retry-after": "0.65"}
    writer.write(reply(429, json.dumps(answer).encode(), headers))


# Connections


@behavior("silence")
async def _silence(_: Seen, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


@behavior("reset-before-headers")
async def _reset_before_headers(_: Seen, writer: asyncio.StreamWriter) -> None:
    _reset(writer)


@behavior("hang-up")
async def _hang_up(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.close()


@behavior("reset-mid-body")
async def _reset_mid_body(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"half", {"content-length": "8000"}))
    await writer.drain()
    await asyncio.sleep(0.02)
    _reset(writer)


@behavior("early-reset")
async def _early_reset(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-ty")
    await writer.drain()
    await asyncio.sleep(0.02)
    _reset(writer)


@behavior("drip-headers")
async def _drip_headers(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
    await _forever(writer, b"a", 0.05)


@behavior("drip-body")
async def _drip_body(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"", {"content-length": "100000"}))
    await _forever(writer, b"a", 0.05)


@behavior("endless-header")
async def _endless_header(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx-long: ")
    await _forever(writer, b"a" * 4096)


@behavior("endless-headers")
async def _endless_headers(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    await _forever(writer, b"x-more: again\r\n" * 50)


@behavior("endless-continue")
async def _endless_continue(_: Seen, writer: asyncio.StreamWriter) -> None:
    await _forever(writer, b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", 0.01)


@behavior("endless-body")
async def _endless_body(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n")
    await _forever(writer, b"10000\r\n" + b"a" * 0x10000 + b"\r\n")


@behavior("one-byte-chunks")
async def _one_byte_chunks(request: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(int(_argument(request) or "1000000") // 10_000):
        writer.write(b"1\r\na\r\n" * 10_000)
        await writer.drain()
    writer.write(b"0\r\n\r\n")


# Framing


@behavior("length-too-long")
async def _length_too_long(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"short", {"content-length": "500"}))
    await writer.drain()
    writer.close()


@behavior("length-too-short")
async def _length_too_short(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"12345HTTP/1.1 200 smuggled\r\n\r\n", {"content-length": "5"}))


@behavior("length-negative")
async def _length_negative(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"12345", {"content-length": "-5"}))


@behavior("length-twice")
async def _length_twice(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"12345", {"Content-Length": "4"}))


@behavior("length-huge")
async def _length_huge(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"12345", {"content-length": "9" * 15}))


@behavior("chunk-garbage")
async def _chunk_garbage(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n"
    )


@behavior("not-http")
async def _not_http(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


# Codings and contents


@behavior("gzip-truncated")
async def _gzip_truncated(_: Seen, writer: asyncio.StreamWriter) -> None:
    noise = random.Random(7).randbytes(4000).hex().encode()
    writer.write(reply(200, gzip.compress(noise)[:-900], {"content-encoding": "gzip"}))


@behavior("gzip-damaged")
async def _gzip_damaged(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"\x1f\x8b\x08\x00" + b"\xff" * 100, {"content-encoding": "gzip"}))


@behavior("gzip-bomb")
async def _gzip_bomb(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, bomb(), {"content-encoding": "gzip"}))


@behavior("gzip-bomb-twice")
async def _gzip_bomb_twice(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, gzip.compress(bomb()), {"content-encoding": "gzip, gzip"}))


@behavior("coding")
async def _coding(request: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, PAGE.encode(), {"content-encoding": _argument(request)}))


@behavior("charset-wrong")
async def _charset_wrong(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, "<p>Köln, às três, dès l'été</p>".encode("latin-1")))


@behavior("header-latin1")
async def _header_latin1(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, PAGE.encode(), {"x-note": "K\udcf6ln"}))


@behavior("nul")
async def _nul(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"<p>a\x00b</p>"))


@behavior("surrogates")
async def _surrogates(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"<p>\xed\xa0\x80 &#xD800; \xff</p>"))


@behavior("json")
async def _json(request: Seen, writer: asyncio.StreamWriter) -> None:
    body = {
        "nan": b'{"value": NaN}',
        "deep": b"[" * 100_000 + b"]" * 100_000,
        "duplicate": b'{"a": 1, "a": 2}',
        "integer": b'{"a": ' + b"9" * 5000 + b"}",
    }[_argument(request)]
    writer.write(reply(200, body, {"content-type": "application/json"}))


# Redirects


@behavior("redirect")
async def _redirect(request: Seen, writer: asyncio.StreamWriter) -> None:
    """`/redirect/<status>/<escaped target>`."""
    writer.write(reply(int(_argument(request)), b"moved", {"location": _argument(request, 3)}))


@behavior("redirect-nowhere")
async def _redirect_nowhere(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(302, b"moved"))


@behavior("redirect-loop")
async def _redirect_loop(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(302, b"", {"location": "/redirect-loop"}))


@behavior("redirect-chain")
async def _redirect_chain(request: Seen, writer: asyncio.StreamWriter) -> None:
    left = int(_argument(request))
    writer.write(reply(301, b"", {"location": f"/redirect-chain/{left - 1}" if left > 1 else "/page"}))


@behavior("redirect-bomb")
async def _redirect_bomb(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(302, bomb(), {"location": "/page", "content-encoding": "gzip"}))


@cache
def bomb(size_bytes: int = 64 * MIB) -> bytes:
    """Return a few kilobytes that decompress to `size_bytes`."""
    engine = zlib.compressobj(9, wbits=31)
    packed = b"".join(engine.compress(bytes(MIB)) for _ in range(size_bytes // MIB))
    return packed + engine.flush()
