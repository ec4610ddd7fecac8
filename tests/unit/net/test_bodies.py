"""Bodies are read within two limits: what travels, and what it becomes."""

from __future__ import annotations

import gzip

import pytest

from tidings.model.errors import Permanent
from tidings.net.bodies import read_body

KIB = 1024


class Stream:
    """What a server sends, chunk by chunk; it never ends by itself."""

    def __init__(self, chunk: bytes) -> None:
        self.chunk = chunk
        self.chunks_read = 0

    async def readany(self) -> bytes:
        self.chunks_read += 1
        assert self.chunks_read < 1_000, "nobody stops reading"
        return self.chunk


async def test_no_more_is_read_than_may_travel() -> None:
    stream = Stream(b"x" * KIB)

    with pytest.raises(Permanent, match="more than 10240 bytes sent"):
        await read_body(stream, {}, "the page", wire_bytes=10 * KIB, body_bytes=10_000 * KIB)

    assert stream.chunks_read == 11


async def test_no_more_is_unpacked_than_allowed() -> None:
    stream = Stream(gzip.compress(b"x" * 100 * KIB))
    headers = {"content-encoding": "gzip"}

    with pytest.raises(Permanent, match="more than 153600 bytes after decompression"):
        await read_body(stream, headers, "the page", wire_bytes=10_000 * KIB, body_bytes=150 * KIB)

    assert stream.chunks_read == 2


async def test_an_announced_size_beyond_the_limit_is_not_even_begun() -> None:
    stream = Stream(b"x")

    with pytest.raises(Permanent, match="11 bytes announced"):
        await read_body(stream, {"content-length": "11"}, "the page", wire_bytes=10, body_bytes=10)

    assert stream.chunks_read == 0
