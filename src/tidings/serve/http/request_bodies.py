"""Reading request bodies: one strict reader, bounded in bytes and seconds; uploads may be compressed by gzip."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Collection
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect, Request

from tidings.serve.http.problems import Problem

JSON_TYPES = ("application/json",)
LINE_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
UPLOAD_CODINGS = ("identity", "gzip")
FORM_TYPE = "application/x-www-form-urlencoded"
_FORM_BYTES_MAX = 16 << 10
_SMALL_BYTES_MAX = 64 << 10


async def read_body(
    request: Request,
    media_types: Collection[str],
    bytes_max: int,
    seconds_max: float,
    *,
    codings: Collection[str] = ("identity",),
) -> bytes:
    """Return the body, decompressed, or raise Problem where its type, coding, size or pace is not allowed.

    The size is that of the decompressed bytes too.
    """
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding not in codings:
        raise Problem(
            415, "This coding is not read.", where="header Content-Encoding", helps=f"Known: {', '.join(codings)}."
        )
    if media_type(request) not in media_types:
        raise Problem(415, f"Send {' or '.join(media_types)}.", where="header Content-Type")
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > bytes_max:
        raise _too_large(bytes_max)
    try:
        async with asyncio.timeout(seconds_max):
            body = await _collect(request, bytes_max)
    except TimeoutError:
        raise Problem(408, f"The body did not arrive within {seconds_max:g} seconds.") from None
    except ClientDisconnect:
        raise Problem(400, "The body ended early.") from None
    # A large body takes a good part of a second: not on the event loop.
    return body if coding == "identity" else await asyncio.to_thread(_decompressed, body, bytes_max)


def _decompressed(packed: bytes, bytes_max: int) -> bytes:
    """Unpack gzip, of one member or several, without ever holding more than is allowed."""
    pieces: list[bytes] = []
    room = bytes_max
    while packed:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            pieces.append(member.decompress(packed, room + 1))
        except zlib.error:
            raise Problem(400, "The body is not proper gzip.", where="body") from None
        room -= len(pieces[-1])
        if room < 0:
            raise _too_large(bytes_max)
        if not member.eof:
            raise Problem(400, "The gzip data is cut off.", where="body")
        packed = member.unused_data.lstrip(b"\0")
    return b"".join(pieces)


async def _collect(request: Request, bytes_max: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > bytes_max:
            raise _too_large(bytes_max)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(bytes_max: int) -> Problem:
    return Problem(413, f"The body is larger than {bytes_max:,} bytes.", helps="Send it in parts.")


def media_type(request: Request) -> str:
    """Return the body's type, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_object(request: Request, form: Any) -> Any:
    """Read a small JSON object into a Struct; an absent body counts as an empty object."""
    if not media_type(request) and request.headers.get("content-length", "0") == "0":
        return msgspec.convert({}, form)
    body = await read_body(request, JSON_TYPES, _SMALL_BYTES_MAX, 10)
    try:
        return msgspec.json.decode(body or b"{}", type=form)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise Problem(400, f"The body does not fit: {error}.", where="body") from None
    except UnicodeDecodeError:
        raise Problem(400, "The body is not UTF-8.", where="body") from None


async def read_form(request: Request) -> dict[str, str]:
    """Read a form of one of our own pages."""
    body = await read_body(request, (FORM_TYPE,), _FORM_BYTES_MAX, 10)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=50, errors="strict"))
    except ValueError:
        raise Problem(400, "The form cannot be read.", where="body") from None
