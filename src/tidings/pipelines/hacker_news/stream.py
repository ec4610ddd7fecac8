"""Follows `maxitem` and `updates` as they change, by the API's server-sent events.

Each event of `updates` is the whole window, so that only ids that come in say that something changed. One that changes
again while it is in the window cannot be told apart: it is read once more when it leaves.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.model.contracts import Fetcher
from tidings.model.errors import TidingsError, Transient
from tidings.watch.logs import Seldom

SILENCE_SECONDS = 75.0
"""The API says `keep-alive` about every 30 seconds."""
BACKOFF_SECONDS_FIRST = 0.5
BACKOFF_SECONDS_MAX = 60.0
GATHER_SECONDS = 0.25
"""What is heard within so short a time is asked for together."""
AGAIN_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""When an id without an item is asked for again, before that is left to the next runs."""
HEARD_MAX = 20_000


@dataclass(slots=True)
class HeardNews:
    """What was heard and nobody has asked for yet."""

    is_followed: bool = False
    """A poller waits for it."""
    newest: int = 0
    changed: dict[int, None] = field(default_factory=dict)
    window: tuple[int, ...] = ()
    _due: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Ids without an item: when to ask again, and how often they were asked for."""
    _postponed: dict[int, float] = field(default_factory=dict)
    """Changed ids that were read a moment ago: when to read them."""
    _heard: asyncio.Event = field(default_factory=asyncio.Event)

    def take_newest(self, data: Any) -> None:
        """Take in the value of `maxitem`."""
        if isinstance(data, int) and data > self.newest:
            self.newest = data
            self._heard.set()

    def take_updates(self, data: Any) -> None:
        """Take in a window of `updates`, or a part of it: what comes in or leaves is to be read."""
        window = tuple(dict.fromkeys(_ids_in(data.get("items") if isinstance(data, dict) else data)))
        if not window:
            return
        for number in set(window) ^ set(self.window):
            if len(self.changed) < HEARD_MAX:
                self.changed[number] = None
        self.window = window
        self._heard.set()

    def ask_again(self, missing: Iterable[int], now: float) -> None:
        """Plan to ask again soon for ids that have no item yet."""
        for number in missing:
            tries = self._due.get(number, (0.0, 0))[1]
            self._due.pop(number, None)
            if tries < len(AGAIN_SECONDS) and len(self._due) < HEARD_MAX:
                self._due[number] = (now + AGAIN_SECONDS[tries], tries + 1)

    def postpone(self, numbers: Iterable[int], until: float) -> None:
        """Keep changed ids for a later signal."""
        for number in numbers:
            if len(self._postponed) < HEARD_MAX:
                self._postponed.setdefault(number, until)

    def forget(self, numbers: Iterable[int]) -> None:
        """Stop asking for ids that have been answered."""
        for number in numbers:
            self._due.pop(number, None)

    async def wait(self) -> None:
        """Wait until there is something to ask for, and a moment longer for what comes with it."""
        due = min((*(at for at, _ in self._due.values()), *self._postponed.values()), default=None)
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - time.monotonic())):
                await self._heard.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER_SECONDS)

    def drain(self) -> Mapping[str, Any]:
        """Return everything heard, as a signal, and forget it."""
        now = time.monotonic()
        again = [number for number, (at, _) in self._due.items() if at <= now]
        for number in [number for number, at in self._postponed.items() if at <= now]:
            del self._postponed[number]
            self.changed[number] = None
        signal = {"newest": self.newest, "changed": list(self.changed), "window": list(self.window), "again": again}
        self.changed.clear()
        self._heard.clear()
        return signal


@asynccontextmanager
async def listening(fetcher: Fetcher, base_url: str, news: HeardNews, *, silence_seconds: float) -> AsyncIterator[None]:
    """Keep both streams open meanwhile."""
    takers = {"maxitem": news.take_newest, "updates": news.take_updates}
    tasks = [
        asyncio.create_task(_follow(fetcher, f"{base_url}/{path}.json", take, silence_seconds))
        for path, take in takers.items()
    ]
    news.is_followed = True
    try:
        yield
    finally:
        news.is_followed = False
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(fetcher: Fetcher, url: str, take: Callable[[Any], None], silence_seconds: float) -> None:
    """Read a stream for ever: open it again at growing distances while it fails."""
    failures, rng, seldom = 0, random.Random(), Seldom(60.0)
    while True:
        try:
            async for event in fetcher.events(url, silence_seconds=silence_seconds):
                if event.name in ("put", "patch"):
                    take(_data_of(event.data))
                    failures = 0
                elif event.name in ("cancel", "auth_revoked"):
                    raise Transient(f"the stream said {event.name}")
        except TidingsError as error:
            seldom.event("stream lost", url=url, error=str(error))
        await asyncio.sleep(min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_FIRST * 2.0**failures) * rng.uniform(0.8, 1.2))
        failures = min(failures + 1, 10)


def _data_of(text: str) -> Any:
    try:
        event = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Transient(f"the stream said what we cannot read: {error}") from error
    return event.get("data") if isinstance(event, dict) else None


def _ids_in(value: Any) -> Iterator[int]:
    """Yield the ids in a list, or in the changed places of one."""
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else (value,):
        if isinstance(each, int) and each > 0:
            yield each
