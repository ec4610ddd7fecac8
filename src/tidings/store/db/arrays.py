"""Columns of a batch as PostgreSQL's binary arrays: a third of the server's time for a row went into reading text."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER = struct.Struct(">iiIii")
_length = struct.Struct(">i").pack
_ONE_DIMENSION, _FROM_ONE = 1, 1
_NULL = _length(-1)


@dataclass(frozen=True, slots=True)
class _Element:
    oid: int
    array_oid: int
    encode: Callable[[Any], bytes]


_ELEMENTS = {
    "text": _Element(25, 1009, str.encode),
    "bigint": _Element(20, 1016, struct.Struct(">q").pack),
    # `b"" + value` also turns a memoryview, as the driver returns bodies, into bytes.
    "bytea": _Element(17, 1001, b"".__add__),
    "double": _Element(701, 1022, struct.Struct(">d").pack),
}
SQL_TYPES = {"text": "text", "bigint": "bigint", "bytea": "bytea", "double": "double precision"}
"""A column's type in a statement's header, and what PostgreSQL calls it."""


class Array:
    """One column, ready to be sent."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Array) -> Buffer:
        return obj.data


_ARRAYS: dict[str, type[Array]] = {}
for _type, _element in _ELEMENTS.items():
    _ARRAYS[_type] = type(f"{_type.split()[0].title()}Array", (Array,), {"__slots__": ()})
    _dumper = type("_Dumper", (_ArrayDumper,), {"oid": _element.array_oid})
    psycopg.adapters.register_dumper(_ARRAYS[_type], _dumper)


def array(column: Sequence[Any], kind: str) -> Array:
    """Write a column; most hold one value for all rows, which is written once."""
    element = _ELEMENTS[kind]
    encode = element.encode
    first = column[0]
    if column.count(first) == len(column):
        values = _one(first, encode) * len(column)
    elif kind == "bigint" and None not in column:
        values = _numbers(column)
    elif None in column:
        values = b"".join([_one(value, encode) for value in column])
    else:
        encoded = list(map(encode, column))
        values = b"".join([piece for value in encoded for piece in (_length(len(value)), value)])
    return _ARRAYS[kind](_HEADER.pack(_ONE_DIMENSION, 1, element.oid, len(column), _FROM_ONE) + values)


def _one(value: Any, encode: Callable[[Any], bytes]) -> bytes:
    if value is None:
        return _NULL
    encoded = encode(value)
    return _length(len(encoded)) + encoded


def _numbers(column: Sequence[int]) -> bytes:
    values = [8] * (2 * len(column))
    values[1::2] = column
    return struct.pack(">" + "iq" * len(column), *values)
