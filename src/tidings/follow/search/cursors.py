"""Where a page ended, and the state of the index that the next one is read from."""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import tantivy

from tidings.follow.search.pages import Best
from tidings.model.contracts import SearchOrder
from tidings.model.errors import BadInput
from tidings.model.query_tree import Part

PINS_MAX = 64
PIN_SECONDS = 300.0


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Behind which hit the next page begins."""

    question: int
    """A checksum of what was asked: a cursor belongs to its query."""
    pin: str
    now_ms: int
    """The time that ages are counted from, on every page the same."""
    shown: int = 0
    total: int = 0
    value: int = 0
    item: int = 0
    """The last hit's time or score, and its item, where pages are sorted by them."""
    instead: dict[str, str] | None = None
    """The words that are searched for instead."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A state of the index that a cursor goes on with, so that others may write meanwhile."""

    searcher: tantivy.Searcher
    until: float
    best: Best


class Pins:
    """The pinned states that are in use: few, and not for long, since each keeps replaced files on the disk."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._pins: OrderedDict[str, Pin] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> Pin | None:
        """Return a pin that is still held, and hold it for longer."""
        with self._lock:
            self._drop_old()
            pin = self._pins.get(name)
            if pin is None:
                return None
            self._hold(name, pin)
            return pin

    def hold(self, searcher: tantivy.Searcher, best: Best) -> str:
        """Pin a state and return its name."""
        name = secrets.token_urlsafe(9)
        with self._lock:
            self._drop_old()
            self._hold(name, Pin(searcher, 0.0, best))
        return name

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._pins.clear()

    def _hold(self, name: str, pin: Pin) -> None:
        self._pins[name] = Pin(pin.searcher, self._monotonic() + PIN_SECONDS, pin.best)
        self._pins.move_to_end(name)
        while len(self._pins) > PINS_MAX:
            self._pins.popitem(last=False)

    def _drop_old(self) -> None:
        now = self._monotonic()
        for name in [name for name, pin in self._pins.items() if pin.until <= now]:
            del self._pins[name]


def checksum(root: Part, pipeline: str | None, order: SearchOrder) -> int:
    """Return a number that stands for what was asked."""
    # The parts are frozen dataclasses: equal queries have equal texts, in every process.
    return zlib.crc32(repr((root, pipeline, order)).encode())


def write_cursor(cursor: Cursor) -> str:
    """Write a cursor as text for an address."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def read_cursor(text: str, question: int) -> Cursor:
    """Read a cursor, or raise BadInput where it is none or belongs to another query."""
    try:
        cursor = msgspec.msgpack.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Cursor)
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise BadInput("this is no cursor of a search; leave it out to begin with the first page") from error
    if cursor.question != question:
        raise BadInput("this cursor belongs to another query; leave it out to begin with the first page")
    return cursor
