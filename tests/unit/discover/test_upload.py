from __future__ import annotations

import gzip
import io
import json
import random
import tracemalloc
from typing import Any

import pytest

from tidings.discover import upload
from tidings.discover.upload import admit_lines, read_lines
from tidings.model.errors import BadInput
from tidings.model.item import Finding


class Trickle(io.RawIOBase):
    """A file that gives a few bytes at a time, whatever is asked."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data, self._step, self._at = data, step, 0

    def read(self, size: int = -1, /) -> bytes:
        self._at += self._step
        return self._data[self._at - self._step : self._at]


def shown(lines):
    return [(number, str(value) if isinstance(value, BadInput) else value) for number, value in lines]


def read(data: bytes, **options):
    return shown(read_lines(io.BytesIO(data), **options))


VALUES: list[Any] = [
    {"id": 1, "t": 'brackets ]}{[, and "quotes" \\'},
    {"id": 2, "k": [1, [2, {"a": "é😀"}]]},
    None,
    "x",
    5,
    [],
]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("form", ["array", "pretty", "lines", "gzip"])
def test_every_form_gives_the_same_values_whatever_the_chunks(step, form):
    lines = "\n".join(json.dumps(value) for value in VALUES).encode()
    data = {
        "array": json.dumps(VALUES).encode(),
        "pretty": b" \n" + json.dumps(VALUES, indent=2, ensure_ascii=False).encode() + b"\n",
        "lines": lines,
        "gzip": gzip.compress(lines),
    }[form]

    assert list(read_lines(Trickle(data, step))) == list(enumerate(VALUES, 1))


def test_blank_lines_keep_their_numbers_and_a_byte_order_mark_is_no_character():
    assert read(b'\xef\xbb\xbf{"a":1}\n\n  \r\n{"a":2}\r\n') == [(1, {"a": 1}), (4, {"a": 2})]


def test_nothing_is_in_an_empty_upload():
    assert read(b"") == read(b" \n\n ") == read(b"[]") == read(b" [ \n ] \n") == read(gzip.compress(b"")) == []


def test_a_bad_line_does_not_stop_the_rest():
    assert read(b'{"a":1}\n{"a":\n{"a":NaN}\n{"a":2}') == [
        (1, {"a": 1}),
        (2, "cut off: it ends inside a value"),
        (3, "NaN and Infinity are no JSON numbers"),
        (4, {"a": 2}),
    ]


def test_a_bad_element_does_not_stop_the_rest():
    assert read(b'[{"a":1},{a:1},{"a":2,},,{"a":3}}, {"a":4}, ]') == [
        (1, {"a": 1}),
        (2, "no JSON: object keys must be strings (byte 1)"),
        (3, "no JSON: trailing comma in object (byte 7)"),
        (4, "empty: two commas, or one too many at the end"),
        (5, "no JSON: trailing characters (byte 8)"),
        (6, {"a": 4}),
        (7, "empty: two commas, or one too many at the end"),
    ]


def test_the_end_of_an_array_is_checked():
    assert read(b'[{"a":1},{"a":2}')[-1] == (2, "cut off: the array never ends")
    assert read(b'[{"a":1}] {"a":2}')[-1] == (2, "something follows the end of the array")
    assert read(b'[{"a":1}]\n\n') == [(1, {"a": 1})]


@pytest.mark.parametrize("step", [50_000, 100_001, 10_000_000])
@pytest.mark.parametrize("filling", [b'"' + b"x\\\\" * 700_000 + b'"', b"[" + b"1," * 700_000 + b"1]"])
def test_an_oversized_value_is_dropped_and_the_rest_goes_on(step, filling):
    big = b'{"t":' + filling + b"}"

    array = shown(read_lines(Trickle(b'[{"a":1},' + big + b',{"a":2}]', step)))
    lines = shown(read_lines(Trickle(b'{"a":1}\n' + big + b'\n{"a":2}', step)))

    assert array == lines == [(1, {"a": 1}), (2, "longer than 1048576 bytes"), (3, {"a": 2})]


def test_damaged_gzip_is_told_after_what_was_good():
    lines = b"".join(b'{"a":%d}\n' % random.Random(7).randrange(10**12) for _ in range(100_000))
    whole = gzip.compress(lines)

    cut = read(whole[: len(whole) // 2])
    damaged = read(gzip.compress(b'{"a":1}\n') + b"\x1f\x8b\x08 nonsense")

    assert cut[-1][1] == "the gzip data is cut off"
    assert 1 < cut[-1][0] < 100_000
    assert damaged[0] == (1, {"a": 1})
    assert "damaged" in damaged[1][1]


def test_several_gzip_members_are_one_file():
    assert read(gzip.compress(b'{"a":1}\n') + gzip.compress(b'{"a":2}\n')) == [(1, {"a": 1}), (2, {"a": 2})]


def test_gzip_is_refused_where_it_is_not_allowed():
    with pytest.raises(BadInput, match="compressed"):
        read(gzip.compress(b"{}"), gzip_allowed=False)


def test_too_many_lines_are_refused():
    assert len(read(b"{}\n" * 3, lines_max=3)) == 3
    with pytest.raises(BadInput, match="more than 3 lines"):
        read(b"{}\n" * 4, lines_max=3)


@pytest.mark.parametrize("form", ["lines", "array"])
def test_memory_stays_flat(form):
    def endless(count):
        yield b"[" if form == "array" else b""
        for number in range(count):
            yield b'{"id":%d,"text":"%s"}%s' % (number, b"x" * 400, b"\n" if form == "lines" else b",\n")
        yield b"null]" if form == "array" else b"null"

    class Generated:
        def __init__(self, count):
            self._parts = endless(count)

        def read(self, size, /):
            parts = []
            while size > 0 and (part := next(self._parts, None)) is not None:
                parts.append(part)
                size -= len(part)
            return b"".join(parts)

    tracemalloc.start()
    count = sum(1 for _ in read_lines(Generated(50_000)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == 50_001
    assert peak < 12 * upload.CHUNK_BYTES


def test_a_gzip_bomb_is_read_in_pieces():
    bomb = gzip.compress(b" " * (64 << 20))

    tracemalloc.start()
    found = read(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert found == [(1, "longer than 1048576 bytes")]
    assert peak < 16 << 20


def test_a_batch_holds_no_more_than_memory_is_meant_to_hold():
    lines = [(n, {"id": n}) for n in range(1, 8)]

    def admit(value, *, way):
        return Finding("p", "k", str(value["id"]), "f", b"x" * (upload.BATCH_BYTES // 2))

    batches = [[finding.key for finding in findings] for findings, _, _ in admit_lines(lines, admit, "BULK")]

    assert batches == [["1", "2"], ["3", "4"], ["5", "6"], ["7"]]


def test_admitted_lines_come_in_batches_with_what_was_rejected():
    def admit(value, *, way):
        if not isinstance(value, dict):
            raise BadInput("not an object")
        return Finding("p", "k", str(value["id"]), "f", way.encode())

    lines = read_lines(io.BytesIO(b'{"id":1}\nnull\n{"id":\n{"id":4}\n{"id":5}'))

    batches = list(admit_lines(lines, admit, "BULK", batch=2))

    assert [[finding.key for finding in findings] for findings, _, _ in batches] == [["1"], ["4"], ["5"]]
    assert [(r.line, r.reason) for _, rejected, _ in batches for r in rejected] == [
        (2, "not an object"),
        (3, "cut off: it ends inside a value"),
    ]
    assert [batch.lines for batch in batches] == [[1], [4], [5]]
    assert batches[0][0][0].payload == b"BULK"
