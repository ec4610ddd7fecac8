"""Reading request bodies: one strict reader, bounded in bytes and seconds; compressed bodies are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect, Request

from tidings.serve.problems import Problem

JSON_TYPES = ("application/json",)
LINE_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
FORM_TYPE = "application/x-www-form-urlencoded"
_FORM_BYTES_MAX = 16 << 10
_SMALL_BYTES_MAX = 64 << 10


async def read_body(request: Request, media_types: Collection[str], bytes_max: int, seconds_max: float) -> bytes:
    """Return the body, or raise Problem where its type, coding, size or pace is not allowed."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "Compressed bodies are not read.", where="header Content-Encoding", helps="Send it plain.")
    if media_type(request) not in media_types:
        raise Problem(415, f"Send {' or '.join(media_types)}.", where="header Content-Type")
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > bytes_max:
        raise _too_large(bytes_max)
    try:
        async with asyncio.timeout(seconds_max):
            return await _collect(request, bytes_max)
    except TimeoutError:
        raise Problem(408, f"The body did not arrive within {seconds_max:g} seconds.") from None
    except ClientDisconnect:
        raise Problem(400, "The body ended early.") from None


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
