"""Read an upload of any size in constant memory: JSON lines or one JSON array, gzipped or not.

A bad line, or a bad element of the array, is reported with its number and the rest goes on.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Protocol

from tidings.discover.strict_json import SIZE_BYTES_MAX, parse
from tidings.model.errors import BadInput
from tidings.model.item import Finding, Rejected
from tidings.model.pipeline import Admit

CHUNK_BYTES = 1 << 18
BATCH = 5_000
BATCH_BYTES = 4 << 20

Line = tuple[int, Any]
"""A number from 1 and the value found there, or the BadInput that says what is wrong with it."""

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"(?>[^"\\]+|\\.)*+"|[\[\]{},]|"', re.DOTALL)
"""A whole string, a structural character, or the quote that opens a string not yet read to its end."""
_STRING_END = re.compile(rb'(?>[^"\\]+|\\.)*+"', re.DOTALL)


class DamagedGzip(BadInput):
    """The compressed data cannot be read further; what came before is good."""


class Readable(Protocol):
    """A binary file, as far as it is needed here."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; nothing at the end."""
        ...


def read_lines(file: Readable, *, gzip_allowed: bool = True, lines_max: int | None = None) -> Iterator[Line]:
    """Yield every value of an upload with its number; raise BadInput where nothing of it can be read.

    The first character decides: `[` opens an array, whose elements are numbered, anything else is JSON lines.
    """
    chunks = iter(lambda: file.read(CHUNK_BYTES), b"")
    head = _head(chunks)
    if head.startswith(_GZIP):
        if not gzip_allowed:
            raise BadInput("compressed uploads are not accepted here; send the JSON itself")
        chunks = _gunzipped(chain([head], chunks))
        head = _head(chunks)
    head = head.removeprefix(_BOM)
    while head.isspace() and len(head) < SIZE_BYTES_MAX and (more := next(chunks, b"")):
        head += more
    is_array = head.lstrip().startswith(b"[")
    number = 0
    try:
        for number, line in (_array if is_array else _lines)(chain([head], chunks)):
            if lines_max is not None and number > lines_max:
                break
            yield number, line
    except DamagedGzip as error:
        yield number + 1, error
    if lines_max is not None and number > lines_max:
        raise BadInput(f"more than {lines_max} lines; split the upload")


class Admitted(NamedTuple):
    """A batch of an upload."""

    findings: list[Finding]
    rejected: list[Rejected]
    """The lines that could not become a finding."""
    lines: list[int]
    """Where each finding stood."""


def admit_lines(lines: Iterable[Line], admit: Admit, way: str, *, batch: int = BATCH) -> Iterator[Admitted]:
    """Make findings of what was read, batch by batch."""
    read = Admitted([], [], [])
    size = 0
    for number, value in lines:
        try:
            if isinstance(value, BadInput):
                raise value
            finding = admit(value, way=way)
            read.findings.append(finding)
            read.lines.append(number)
            size += len(finding.payload)
        except BadInput as error:
            read.rejected.append(Rejected(number, str(error)))
        if len(read.findings) + len(read.rejected) >= batch or size >= BATCH_BYTES:
            yield read
            read, size = Admitted([], [], []), 0
    if read.findings or read.rejected:
        yield read


def _head(chunks: Iterator[bytes]) -> bytes:
    """Read enough to tell what kind of file it is."""
    head = b""
    while len(head) < len(_BOM) and (more := next(chunks, b"")):
        head += more
    return head


def _gunzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a chunk's worth at a time, however far the data would swell; several members may follow each other."""
    unzip = zlib.decompressobj(31)
    is_open = False
    try:
        for chunk in chunks:
            while chunk:
                is_open = True
                if plain := unzip.decompress(chunk, CHUNK_BYTES):
                    yield plain
                chunk = unzip.unconsumed_tail
                if unzip.eof:
                    chunk = unzip.unused_data.lstrip(b"\0")
                    unzip, is_open = zlib.decompressobj(31), False
        if is_open:
            yield unzip.flush()
    except zlib.error as error:
        raise DamagedGzip(f"the gzip data is damaged: {error}") from None
    if is_open and not unzip.eof:
        raise DamagedGzip("the gzip data is cut off")


def _value(data: bytes) -> Any:
    try:
        return parse(data)
    except BadInput as error:
        return error


def _lines(chunks: Iterable[bytes]) -> Iterator[Line]:
    number = 0
    pending = b""
    too_long = False
    for chunk in chain(chunks, [b"\n"]):
        whole = (pending + chunk).split(b"\n")
        pending = whole.pop()
        for line in whole:
            number += 1
            if too_long:
                too_long = False
                yield number, _oversized()
            elif line and not line.isspace():
                yield number, _value(line)
        if too_long or len(pending) > SIZE_BYTES_MAX:
            too_long, pending = True, b""


def _oversized() -> BadInput:
    return BadInput(f"longer than {SIZE_BYTES_MAX} bytes")


def _array(chunks: Iterable[bytes]) -> Iterator[Line]:
    elements = _Elements()
    for chunk in chunks:
        yield from elements.feed(chunk)
    yield from elements.end()


class _Elements:
    """Cuts an array into its elements by strings and brackets alone, so that a bad element hides no other."""

    def __init__(self) -> None:
        self._buffer = b""
        self._start = 0
        """Where the current element begins in the buffer."""
        self._scan = 0
        """What lies before is looked at already."""
        self._depth = -1
        """Brackets open inside the current element; -1 before the array's own."""
        self._number = 0
        self._is_over = False
        self._has_more = False
        """Something follows the end of the array."""
        self._is_oversized = False
        self._inside_string = False
        """An oversized element was dropped in the middle of a string."""

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Take more bytes; yield the elements that are complete now."""
        if self._is_over:
            self._has_more = self._has_more or bool(chunk.strip())
            return
        self._buffer = self._buffer[self._start :] + chunk
        self._scan -= self._start
        self._start = 0
        if self._inside_string and not self._leave_string():
            return
        yield from self._cut_all()
        self._limit()

    def end(self) -> Iterator[Line]:
        """Say what is wrong with the end, if anything."""
        if not self._is_over:
            yield self._number + 1, BadInput("cut off: the array never ends")
        elif self._has_more:
            yield self._number + 1, BadInput("something follows the end of the array")

    def _cut_all(self) -> Iterator[Line]:
        for match in _TOKEN.finditer(self._buffer, self._scan):
            token = match[0]
            if token == b'"':
                self._scan = match.start()
                return
            if line := self._take(token, match.start()):
                yield line
            if self._is_over:
                self._has_more = bool(self._buffer[match.end() :].strip())
                self._buffer = b""
                return
        self._scan = len(self._buffer)

    def _take(self, token: bytes, at: int) -> Line | None:
        if self._depth == -1:
            self._depth, self._start = 0, at + 1
        elif token in (b"{", b"["):
            self._depth += 1
        elif self._depth > 0:
            self._depth -= token in (b"}", b"]")
        elif token == b"]":
            self._is_over = True
            return self._cut(at)
        elif token == b",":
            return self._cut(at)
        return None

    def _cut(self, at: int) -> Line | None:
        element, self._start = self._buffer[self._start : at].strip(), at + 1
        oversized, self._is_oversized = self._is_oversized or len(element) > SIZE_BYTES_MAX, False
        if self._is_over and not element and not oversized and self._number == 0:
            return None
        self._number += 1
        if oversized:
            return self._number, _oversized()
        return self._number, _value(element) if element else BadInput("empty: two commas, or one too many at the end")

    def _limit(self) -> None:
        """Keep no more than an element may have: drop what was read of a longer one and remember that it was."""
        if len(self._buffer) - self._start <= SIZE_BYTES_MAX:
            return
        self._is_oversized = True
        self._start = self._scan
        if len(self._buffer) - self._scan > SIZE_BYTES_MAX:
            self._inside_string = True
            self._scan += 1
            self._leave_string()

    def _leave_string(self) -> bool:
        """Find the end of the string we were dropped into, or forget what there is of it but an open escape."""
        if match := _STRING_END.match(self._buffer, self._scan):
            self._scan = self._start = match.end()
            self._inside_string = False
            return True
        tail = self._buffer[self._scan :]
        open_escape = (len(tail) - len(tail.rstrip(b"\\"))) % 2
        self._start = self._scan = len(self._buffer) - open_escape
        return False
