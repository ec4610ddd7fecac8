"""Reads response bodies in bounded steps: bytes on the wire, bytes after decompression, one coding, known types."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Protocol

from tidings.model.errors import Permanent, Transient

ACCEPT_ENCODING = "gzip, deflate"
_STEP_BYTES = 64 * 1024
_READABLE_TYPES = frozenset(
    {
        "application/feed+json",
        "application/json",
        "application/ld+json",
        "application/rdf+xml",
        "application/rss+xml",
        "application/atom+xml",
        "application/xhtml+xml",
        "application/xml",
        "text/html",
        "text/json",
        "text/markdown",
        "text/plain",
        "text/x-markdown",
        "text/xml",
    }
)


class Chunks(Protocol):
    """The part of aiohttp's stream that is used."""

    async def readany(self) -> bytes:
        """Return what has arrived, or nothing at the end."""
        ...


async def read_body(
    stream: Chunks, headers: Mapping[str, str], shown: str, *, wire_bytes: int, body_bytes: int
) -> bytes:
    """Read to the end within both limits; raise Permanent when too large, Transient when damaged."""
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > wire_bytes:
        raise Permanent(f"{shown} is too large: {declared[:20]} bytes announced, {wire_bytes} allowed")
    inflate = _coding(headers.get("content-encoding", ""), shown, body_bytes)
    received = 0
    body = bytearray()
    while chunk := await stream.readany():
        received += len(chunk)
        if received > wire_bytes:
            raise Permanent(f"{shown} is too large: more than {wire_bytes} bytes sent")
        if inflate is None:
            body += chunk
        else:
            inflate.feed(chunk, body)
        if len(body) > body_bytes:
            raise Permanent(f"{shown} is too large: more than {body_bytes} bytes after decompression")
    if inflate is not None and received:
        inflate.finish()
    return bytes(body)


def check_type(headers: Mapping[str, str], shown: str, accept: str = "") -> None:
    """Refuse what is neither HTML, text, XML, JSON nor asked for. A missing type is judged by its bytes later on."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_readable = kind in _READABLE_TYPES or (kind.startswith("application/") and kind.endswith(("+json", "+xml")))
    is_packed = kind in ("application/gzip", "application/x-gzip") and "application/gzip" in accept
    if kind and not is_readable and not is_packed:
        raise Permanent(f"{shown} is {kind[:80]!a}: only HTML, text, feeds and JSON are read")


def check_untyped(headers: Mapping[str, str], body: bytes, shown: str) -> None:
    """Refuse a body without a type that does not begin like text."""
    if not headers.get("content-type", "").strip() and b"\x00" in body[:1024]:
        raise Permanent(f"{shown} names no content type and is not text")


class _Inflate:
    """Decompresses step by step into a bounded buffer; follows concatenated gzip members."""

    def __init__(self, window_bits: int, shown: str, body_bytes: int) -> None:
        self._window_bits = window_bits
        self._shown = shown
        self._body_bytes = body_bytes
        self._engine = zlib.decompressobj(window_bits)
        self._started = False

    def feed(self, data: bytes, body: bytearray) -> None:
        """Append what `data` decompresses to, but stop one step past the limit."""
        while data and len(body) <= self._body_bytes:
            if self._engine.eof:
                if self._window_bits != _GZIP or not data.startswith(b"\x1f\x8b"):
                    return  # Padding after the end, which browsers ignore too.
                self._engine = zlib.decompressobj(self._window_bits)
            data = self._step(data, body)

    def _step(self, data: bytes, body: bytearray) -> bytes:
        try:
            body += self._engine.decompress(data, _STEP_BYTES)
        except zlib.error as error:
            if self._started or self._window_bits != zlib.MAX_WBITS:
                raise Transient(f"{self._shown} sent a damaged compressed body") from error
            # Some servers call a raw stream "deflate"; the standard wraps it in a zlib header.
            self._window_bits = -zlib.MAX_WBITS
            self._engine = zlib.decompressobj(self._window_bits)
            return data
        self._started = True
        return self._engine.unused_data or self._engine.unconsumed_tail

    def finish(self) -> None:
        """Complain if the stream was cut short."""
        if not self._engine.eof:
            raise Transient(f"{self._shown} sent a compressed body that was cut short")


_GZIP = zlib.MAX_WBITS | 16
_WINDOW_BITS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


def _coding(header: str, shown: str, body_bytes: int) -> _Inflate | None:
    coding = header.strip().lower()
    if coding in ("", "identity"):
        return None
    if coding not in _WINDOW_BITS:
        raise Permanent(f"{shown} is coded as {coding[:80]!a}: only gzip or deflate, once, is read")
    return _Inflate(_WINDOW_BITS[coding], shown, body_bytes)
