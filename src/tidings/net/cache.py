"""What conditional requests remember: a page's validators and the body they stand for."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from tidings.model.contracts import Ledger
from tidings.model.web import Response

_KEPT_HEADERS = ("content-type", "etag", "last-modified", "link")


class HttpCache(Protocol):
    """Where answers rest between runs; wired to the store by the application."""

    async def get(self, key: str) -> bytes | None:
        """Return a value that has not expired."""
        ...

    async def put(self, key: str, value: bytes, ttl_seconds: int) -> None:
        """Keep a value for a time."""
        ...


class LedgerCache:
    """The cache in the store, shared by every process."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def get(self, key: str) -> bytes | None:
        """Return a value that has not expired."""
        return await self._ledger.get("http", key)

    async def put(self, key: str, value: bytes, ttl_seconds: int) -> None:
        """Keep a value for a time."""
        await self._ledger.put("http", key, value, ttl_seconds)


class MemoryCache:
    """A small cache inside the process; the oldest values give way to new ones."""

    def __init__(self, size_bytes_max: int = 32 * 1024 * 1024, clock: Callable[[], float] = time.monotonic) -> None:
        self._size_bytes_max = size_bytes_max
        self._clock = clock
        self._size_bytes = 0
        self._values: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    async def get(self, key: str) -> bytes | None:
        """Return a value that has not expired."""
        entry = self._values.get(key)
        if entry is None or entry[0] <= self._clock():
            return None
        self._values.move_to_end(key)
        return entry[1]

    async def put(self, key: str, value: bytes, ttl_seconds: int) -> None:
        """Keep a value for a time."""
        if (old := self._values.pop(key, None)) is not None:
            self._size_bytes -= len(old[1])
        self._values[key] = (self._clock() + ttl_seconds, value)
        self._size_bytes += len(value)
        while self._size_bytes > self._size_bytes_max:
            _, (_, dropped) = self._values.popitem(last=False)
            self._size_bytes -= len(dropped)


class Stored(msgspec.Struct, frozen=True):
    """An answer worth asking about again."""

    status: int
    headers: dict[str, str]
    body: bytes

    def validators(self) -> dict[str, str]:
        """Return the request headers that ask whether this is still current."""
        asked = {"if-none-match": self.headers.get("etag"), "if-modified-since": self.headers.get("last-modified")}
        return {name: value for name, value in asked.items() if value}


def stored_key(method: str, url: str, headers: Mapping[str, str]) -> str:
    """Name an answer by everything that chose it; hashed, since addresses and headers may hold credentials."""
    chosen_by = [headers.get(name, "") for name in ("accept", "authorization")]
    digest = hashlib.sha256("\n".join([method, url, *chosen_by]).encode("utf-8", "surrogatepass"))
    return f"http:{digest.hexdigest()}"


def worth_storing(response: Response, size_bytes_max: int) -> Stored | None:
    """Return what to remember of an answer, or None if the server gave no way to ask again or forbids keeping it."""
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    if response.status != 200 or not ("etag" in headers or "last-modified" in headers):
        return None
    if len(response.body) > size_bytes_max or "no-store" in response.headers.get("cache-control", "").lower():
        return None
    return Stored(status=response.status, headers=headers, body=response.body)


def encode(stored: Stored) -> bytes:
    """Write an answer for the cache."""
    return msgspec.msgpack.encode(stored)


def decode(value: bytes | None) -> Stored | None:
    """Read an answer from the cache; one of an older shape counts as absent."""
    try:
        return None if value is None else msgspec.msgpack.decode(value, type=Stored)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
