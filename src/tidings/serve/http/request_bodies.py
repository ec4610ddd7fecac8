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
_WINDOW_BYTES = 4 << 10
_MEMBERS_MAX = 100_000
_IN_ONE = "Compress it in one piece."


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
    room, start, members = bytes_max, 0, 0
    while start < len(packed):
        members += 1
        if members > _MEMBERS_MAX:
            raise Problem(413, f"The gzip data has more than {_MEMBERS_MAX:,} members.", where="body", helps=_IN_ONE)
        piece, start = _member(packed, start, room)
        room -= len(piece)
        if room < 0:
            raise _too_large(bytes_max)
        pieces.append(piece)
    return b"".join(pieces)


def _member(packed: bytes, start: int, room: int) -> tuple[bytes, int]:
    """Unpack one member, to one byte more than there is room for; return it and where the next begins.

    The data is given to zlib in small windows, because it copies what lies behind a member's end: half a million empty
    members with the whole rest copied for each of them kept a processor busy for most of a minute.
    """
    member, pieces, size = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), [], 0
    while not member.eof and start < len(packed) and size <= room:
        window = packed[start : start + _WINDOW_BYTES]
        start += len(window)
        try:
            pieces.append(member.decompress(window, room + 1 - size))
        except zlib.error:
            raise Problem(400, "The body is not proper gzip.", where="body") from None
        size += len(pieces[-1])
    if size <= room and not member.eof:
        raise Problem(400, "The gzip data is cut off.", where="body")
    start -= len(member.unused_data)
    while packed[start : start + 1] == b"\0":
        start += 1
    return b"".join(pieces), start


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
