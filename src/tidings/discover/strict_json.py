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
_SPACED_COLONS = (b" :", b"\n:", b"\t:", b"\r:")
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
    if b"\\u0000" in data and _has_nul(value):
        raise BadInput("a string holds a NUL character")
    if keys and not _surely_distinct(data, keys):
        json.loads(data, object_pairs_hook=_distinct)
    return value


def _checked(value: Any, depth: int) -> int:
    """Count the keys; refuse too many levels and too large integers."""
    if depth > DEPTH_MAX:
        raise BadInput(f"nested deeper than {DEPTH_MAX} levels")
    keys = 0
    if type(value) is dict:
        keys = len(value)
        value = value.values()
    for each in value:
        kind = type(each)
        if kind is int:
            if not INTEGER_MIN <= each <= INTEGER_MAX:
                raise BadInput("an integer needs more than 64 bits")
        elif kind is dict or kind is list:
            keys += _checked(each, depth + 1)
    return keys


def _surely_distinct(data: bytes, keys: int) -> bool:
    """Tell cheaply that no key was repeated: every key ends in `":`, and there are no more of these than keys we got.

    Spaces before a colon would hide a key from the count, so they count as doubt; so do quotes inside strings.
    """
    return data.count(b'":') == keys and not any(spaced in data for spaced in _SPACED_COLONS)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the key {twice[:100]!r} is given twice")
    return found


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any("\0" in name or _has_nul(each) for name, each in value.items())
    return isinstance(value, list) and any(_has_nul(each) for each in value)


def _reason(data: bytes, error: Exception) -> str:
    """Say what is wrong in words a sender understands; the decoder's own are the last resort."""
    said = str(error)
    if isinstance(error, RecursionError):
        return f"nested deeper than {DEPTH_MAX} levels"
    if isinstance(error, UnicodeDecodeError) or not _is_utf8(data):
        return "not UTF-8"
    if "out of range" in said:
        return "an integer needs more than 64 bits" if said.startswith("Integer") else "a number is too large"
    if _SURROGATE.search(data):
        return "a string holds a lone surrogate"
    if said == "Input data was truncated":
        return "cut off: it ends inside a value"
    position = _POSITION.search(said)
    if position and _NOT_A_NUMBER.match(data, int(position[1])):
        return "NaN and Infinity are no JSON numbers"
    return f"no JSON: {said.removeprefix('JSON is malformed: ')}"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
