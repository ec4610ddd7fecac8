"""What the index is given of an item, and what it keeps of it to show."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.model.publication import Document


class SearchEntry(msgspec.Struct, frozen=True, array_like=True):
    """A document with the names it is known by."""

    item: int
    pipeline: str
    kind: str
    key: str
    shelf_key: str
    document: Document
    thread: Sequence[str] = ()
    """The keys of the items above it."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(SearchEntry)


def encode(entry: SearchEntry) -> bytes:
    """Write an entry as the index stores it."""
    return _ENCODER.encode(entry)


def decode(data: bytes) -> SearchEntry:
    """Read a stored entry."""
    return _DECODER.decode(data)
