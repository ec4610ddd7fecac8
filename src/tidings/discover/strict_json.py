"""Read JSON that strangers send: one strict reading, so that both databases and every reader agree on what it says."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from tidings.model.errors import BadInput

SIZE_BYTES_MAX = 1 << 20
DEPTH_MAX = 32
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

_DECODE = msgspec.json.Decoder().decode
_SPACES = b" \t\r\n"
_SURROGATE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\)\\u[dD][c-fC-F]")
_NOT_A_NUMBER = re.compile(rb"-?(NaN|Infinity|inf)")
_POSITION = re.compile(r"\(byte (\d+)\)")


def parse(data: bytes, *, size_bytes_max: int = SIZE_BYTES_MAX) -> Any:
    """Return the value, or raise BadInput with a reason.

    Refused besides what JSON itself refuses: NaN, duplicate keys, NUL characters, lone surrogates, integers beyond 64
    bits, more than 32 levels.
    """
    if len(data) > size_bytes_max:
        raise BadInput(f"longer than {size_bytes_max} bytes")
    try:
        value = _DECODE(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(_reason(data, error)) from None
    keys = _checked(value, 1) if isinstance(value, (dict, list)) else _checked([value], 0)
    if keys and not _surely_distinct(data, keys):
        json.loads(data, object_pairs_hook=_distinct)
    return value


def _checked(value: Any, depth: int) -> int:
    """Count the keys; refuse too many levels, too large integers and NUL characters."""
    if depth > DEPTH_MAX:
        raise BadInput(f"nested deeper than {DEPTH_MAX} levels")
    keys = 0
    if type(value) is dict:
        keys = len(value)
        if "\0" in "".join(value):
            raise BadInput("a key holds a NUL character")
        value = value.values()
    for each in value:
        kind = type(each)
        if kind is str:
            if "\0" in each:
                raise BadInput("a string holds a NUL character")
        elif kind is int:
            if not INTEGER_MIN <= each <= INTEGER_MAX:
                raise BadInput("an integer needs more than 64 bits")
        elif kind is dict or kind is list:
            keys += _checked(each, depth + 1)
    return keys


def _surely_distinct(data: bytes, keys: int) -> bool:
    """Tell cheaply that no key was repeated: apart from spaces every key ends in `":`, and there are as many as we got.

    The same characters inside a string raise the count and so the doubt, never the trust.
    """
    return data.translate(None, _SPACES).count(b'":') == keys


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the key {twice[:100]!r} is given twice")
    return found


def _reason(data: bytes, error: Exception) -> str:
    """Say what is wrong in words a sender understands; the decoder's own are the last resort."""
    message = str(error)
    if isinstance(error, RecursionError):
        return f"nested deeper than {DEPTH_MAX} levels"
    if isinstance(error, UnicodeDecodeError) or not _is_utf8(data):
        return "not UTF-8"
    if "out of range" in message:
        return "an integer needs more than 64 bits" if message.startswith("Integer") else "a number is too large"
    if _SURROGATE.search(data):
        return "a string holds a lone surrogate"
    if message == "Input data was truncated":
        return "cut off: it ends inside a value"
    position = _POSITION.search(message)
    if position and _NOT_A_NUMBER.match(data, int(position[1])):
        return "NaN and Infinity are no JSON numbers"
    return f"no JSON: {message.removeprefix('JSON is malformed: ')}"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
