"""The catalog: what a mirror holds of one pipeline, and how far it has followed; written after the cards it lists."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import msgspec

FORMAT = 1
"""Raised when the catalog's shape changes; a mirror with another one is made from nothing."""


def digest(value: bytes) -> str:
    """Return a short fingerprint of a value, to tell whether it changed."""
    return blake2b(value, digest_size=9).hexdigest()


class CardNote(msgspec.Struct, array_like=True, frozen=True):
    """What is remembered of a card that was written: enough to list it, and to know whether it changed."""

    sort: int
    revision: int
    version: int
    written_at: int
    digest: str


class Catalog(msgspec.Struct, kw_only=True):
    """What a mirror holds of one pipeline. Position and cards are one value, so that they move together."""

    format: int = FORMAT
    pipeline: str
    position: str | None = None
    sequence: int = 0
    """Grows with every catalog written: readers notice a change by it."""
    indexed_at: int = 0
    """When it was written."""
    cards: dict[str, dict[str, CardNote]] = {}
    """By collection and id."""
    ids: dict[str, list[str]] = {}
    """The id index of those collections that have one, newest first, as the store says."""
    index_digests: dict[str, str] = {}
    """What was last written under the name of each id index."""
    doomed: list[str] = []
    """Keys of withdrawn cards that may still stand in the target."""
    unconfirmed: list[str] = []
    """Keys of cards from before a start from nothing that the stream has not shown again yet."""

    def listing(self, collection: str) -> list[str]:
        """Return the ids that readers may list, newest first: only those whose card was written."""
        cards = self.cards.get(collection, {})
        if collection in self.ids:
            return [each for each in self.ids[collection] if each in cards]
        return sorted(cards, key=lambda each: (cards[each].sort, each), reverse=True)

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield collection and id of every card."""
        for collection, cards in self.cards.items():
            for each in cards:
                yield collection, each


_encode = msgspec.json.Encoder(order="deterministic").encode


def encoded(catalog: Catalog) -> bytes:
    """Write a catalog."""
    return _encode(catalog)


def decoded(pipeline: str, value: bytes | None) -> Catalog:
    """Read a catalog; one that is missing, damaged or of another format is as if nothing had been mirrored."""
    return readable(pipeline, value) or Catalog(pipeline=pipeline)


def readable(pipeline: str, value: bytes | None) -> Catalog | None:
    """Read a catalog, or return None where there is none that can be read."""
    if value is None:
        return None
    try:
        catalog = msgspec.json.decode(value, type=Catalog)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    # Two deployments may share a folder or a database by mistake.
    return catalog if catalog.format == FORMAT and catalog.pipeline == pipeline else None
