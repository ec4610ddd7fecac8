"""Answers as bytes: entity tags, compression and the headers every response of ours carries."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from starlette.types import Message, Receive, Scope, Send

from tidings.serve.http.problems import MEDIA_TYPE, Problem

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
Header = tuple[bytes, bytes]
SECURITY_HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
JSON = "application/json"
HTML = "text/html; charset=utf-8"
_GZIP_FROM_BYTES = 1_000
_OVERHEAD_BYTES = 4_000
"""What an answer takes besides its body: headers, messages, its key. Measured, and rounded up."""
_NOTHING: Message = {"type": "http.response.body", "body": b""}


class Encoded:
    """A body ready to be sent as often as it is asked for: plain, compressed (made once, when first wanted), or 304."""

    __slots__ = ("_gzip", "body", "etag", "headers", "payload", "start", "unchanged")

    def __init__(
        self, body: bytes, media_type: str = JSON, *, cache: str = "private, no-cache", extra: Iterable[Header] = ()
    ) -> None:
        self.body = body
        self.etag = b'W/"%s"' % blake2b(body, digest_size=12).hexdigest().encode()
        shared = [
            (b"etag", self.etag),
            (b"cache-control", cache.encode()),
            (b"vary", b"accept-encoding, cookie"),
            *extra,
        ]
        self.headers: list[Header] = [(b"content-type", media_type.encode()), *shared]
        self.start: Message = _start(200, [*self.headers, (b"content-length", b"%d" % len(body)), *SECURITY_HEADERS])
        self.payload: Message = {"type": "http.response.body", "body": body}
        self.unchanged: Message = _start(304, [*shared, *SECURITY_HEADERS])
        self._gzip: tuple[Message, Message] | None = None

    @property
    def size_bytes(self) -> int:
        """How much memory it takes at most: also once it was compressed, which happens when it is first wanted so."""
        return 2 * len(self.body) + _OVERHEAD_BYTES

    async def send(self, send: Send, accept_encoding: bytes, if_none_match: bytes) -> int:
        """Send what fits the request; return the status."""
        if if_none_match and (self.etag[2:] in if_none_match or if_none_match.strip() == b"*"):
            await send(self.unchanged)
            await send(_NOTHING)
            return 304
        if accept_encoding and len(self.body) >= _GZIP_FROM_BYTES and takes_gzip(accept_encoding):
            start, payload = self._gzip or self._compress()
            await send(start)
            await send(payload)
            return 200
        await send(self.start)
        await send(self.payload)
        return 200

    def _compress(self) -> tuple[Message, Message]:
        packed = gzip.compress(self.body, compresslevel=4, mtime=0)
        length = (b"content-length", b"%d" % len(packed))
        headers = [*self.headers, (b"content-encoding", b"gzip"), length, *SECURITY_HEADERS]
        self._gzip = (_start(200, headers), {"type": "http.response.body", "body": packed})
        return self._gzip


def stale(encoded: Encoded, age_seconds: float) -> Encoded:
    """Return an answer as it was when the store last answered: a list says so in its warnings, each in a header."""
    document = msgspec.json.decode(encoded.body)
    body = encoded.body
    if isinstance(document, dict) and isinstance(document.get("warnings"), list):
        told = f"the store does not answer; this was current {age_seconds:.0f} s ago"
        body = msgspec.json.encode(document | {"warnings": [*document["warnings"], told]})
    return Encoded(body, extra=[(b"age", b"%d" % age_seconds)])


def _start(status: int, headers: list[Header]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


def takes_gzip(accept_encoding: bytes) -> bool:
    """Tell whether an Accept-Encoding header allows gzip."""
    for part in accept_encoding.lower().split(b","):
        name, _, weight = part.partition(b";")
        if name.strip() in (b"gzip", b"*"):
            return weight.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


class Reply:
    """An answer made for one request. Successful reads get an entity tag."""

    def __init__(
        self,
        body: bytes = b"",
        status: int = 200,
        media_type: str | None = JSON,
        headers: Mapping[str, str] | None = None,
        *,
        encoded: Encoded | None = None,
        tagged: bool = True,
    ) -> None:
        self.body = encoded.body if encoded is not None else body
        self.status = status
        self.media_type = media_type
        self.headers = dict(headers or {})
        self._encoded = encoded
        self._tagged = tagged

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it, as an ASGI application."""
        headers = {name: value for name, value in scope["headers"] if name in (b"accept-encoding", b"if-none-match")}
        accept_encoding = headers.get(b"accept-encoding", b"")
        encoded = self._encoded
        if encoded is None and self._tagged and self.status == 200 and scope["method"] in ("GET", "HEAD"):
            encoded = self._encode()
        if encoded is not None:
            await encoded.send(send, accept_encoding, headers.get(b"if-none-match", b""))
            return
        await send(self._start(packed := self._packed(accept_encoding)))
        await send({"type": "http.response.body", "body": packed if packed is not None else self.body})

    def _encode(self) -> Encoded:
        extra = [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        return Encoded(self.body, self.media_type or JSON, extra=extra)

    def _packed(self, accept_encoding: bytes) -> bytes | None:
        if len(self.body) < _GZIP_FROM_BYTES or not accept_encoding or not takes_gzip(accept_encoding):
            return None
        return gzip.compress(self.body, compresslevel=4, mtime=0)

    def _start(self, packed: bytes | None) -> Message:
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        if self.media_type is not None and "content-type" not in {name.lower() for name in self.headers}:
            headers.append((b"content-type", self.media_type.encode()))
        if packed is not None:
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
        if not any(name == b"cache-control" for name, _ in headers):
            headers.append((b"cache-control", b"no-store"))
        if self.status != 204:
            headers.append((b"content-length", b"%d" % len(packed if packed is not None else self.body)))
        return _start(self.status, headers)


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Answer with JSON."""
    return Reply(msgspec.json.encode(value), status, headers=headers)


def refusal(problem: Problem) -> Reply:
    """Answer with a problem document."""
    return Reply(problem.body(), problem.status, MEDIA_TYPE, problem.headers)


def secured(send: Send) -> Send:
    """Put the security headers on whatever is sent, unless it carries them already."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            present = {name for name, _ in headers}
            headers += [header for header in SECURITY_HEADERS if header[0] not in present]
            message = {**message, "headers": headers}
        await send(message)

    return sending
