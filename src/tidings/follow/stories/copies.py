"""Finds near-copies: the same address, or almost the same text (a press release on twenty sites)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import TypeVar

from rensa import RMinHash

from tidings.model.errors import BadInput
from tidings.model.urls import canonical_url
from tidings.model.words import words

K = TypeVar("K")
SEED = 7
HASHES, BAND = 64, 4
ALIKE = 0.6
"""So much of their shingles two texts share to be copies. Sixteen bands of four find nearly all of these."""
SHINGLE = 4
WORDS_MIN, WORDS_MAX = 40, 1_000
"""A shorter text is a teaser: two reports may share it, and so may two pages of one site."""
BAND_MEMBERS_MAX = 20


def address_of(url: str) -> str:
    """Return the one spelling of an address by which items belong together; empty where there is none.

    The scheme, `www.` and a slash at the end select nothing on any site of the news.
    """
    try:
        plain = canonical_url(url).partition("://")[2].removeprefix("www.").rstrip("/")
    except BadInput:
        return ""
    # The front page of a site is where many unrelated items point to.
    return plain if "/" in plain or "?" in plain else ""


def digest_of(text: str) -> bytes:
    """Return the MinHash of a text, or nothing where it is too short to tell."""
    found = words(text.lower())[:WORDS_MAX]
    if len(found) < WORDS_MIN:
        return b""
    hashes = RMinHash(HASHES, SEED)
    hashes.update([" ".join(found[n : n + SHINGLE]) for n in range(len(found) - SHINGLE + 1)])
    return array("I", hashes.digest()).tobytes()


class CopyIndex:
    """Members by address and by the bands of their digest."""

    def __init__(self) -> None:
        self._addresses: dict[str, list[int]] = {}
        self._bands: dict[tuple[int, bytes], list[int]] = {}
        self._digests: dict[int, bytes] = {}

    def add(self, member: int, address: str, digest: bytes) -> None:
        """Take in a member."""
        if address:
            self._addresses.setdefault(address, []).append(member)
        if digest:
            self._digests[member] = digest
            for band in _bands(digest):
                self._bands.setdefault(band, []).append(member)

    def remove(self, member: int, address: str) -> None:
        """Forget a member."""
        if address:
            _take_out(self._addresses, address, member)
        for band in _bands(self._digests.pop(member, b"")):
            _take_out(self._bands, band, member)

    def find(self, address: str, digest: bytes) -> int | None:
        """Return the oldest member that is a copy."""
        if members := self._addresses.get(address):
            return members[0]
        if not digest:
            return None
        near = {each for band in _bands(digest) for each in self._bands.get(band, ())[:BAND_MEMBERS_MAX]}
        return min((each for each in near if _alike(digest, self._digests[each]) >= ALIKE), default=None)


def _bands(digest: bytes) -> Iterator[tuple[int, bytes]]:
    width = BAND * array("I").itemsize
    return ((start, digest[start : start + width]) for start in range(0, len(digest), width))


def _alike(one: bytes, other: bytes) -> float:
    pairs = zip(array("I", one), array("I", other), strict=True)
    return sum(a == b for a, b in pairs) / HASHES


def _take_out(index: dict[K, list[int]], key: K, member: int) -> None:
    members = index[key]
    members.remove(member)
    if not members:
        del index[key]
