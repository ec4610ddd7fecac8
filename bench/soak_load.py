"""What a soak does to tidings: readers of every kind of page who come and go, uploads, and a world that goes on."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from bench import hn_items

READERS = 3
PAUSE_SECONDS = 0.02
UPLOAD_SECONDS, UPLOAD_ITEMS = 1.0, 30
STREAM_SECONDS = 2.0
RECONNECT_AFTER = 60
GROW_SECONDS = 1.0
PIPELINES = ("hacker_news", "bitcoin_news", "eu_funding", "first_issues", "feeds")
LISTS = (
    "hacker_news/items",
    "bitcoin_news/articles",
    "eu_funding/opportunities",
    "first_issues/repos",
    "first_issues/issues",
    "feeds/entries",
)
PAGES = ("/", "/items", "/sources", "/dead-letters", "/deliveries", "/alerts", "/docs", "/workflows/hacker_news")
API = ("status", "pipelines", "alerts", "sources", "deliveries", "items", "dead-letters", "items?state=completed")
MACHINES = ("/healthz", "/readyz", "/metrics", "/openapi.json")


class Load:
    """Threads that ask, each with connections of its own; counts answers by their status."""

    def __init__(self, address: str, token: str, stop: threading.Event, rng: random.Random) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None
        assert parts.port is not None
        self._place = (parts.hostname, parts.port)
        self._token, self._stop, self._rng = token, stop, rng
        self._statuses: Counter[int] = Counter()
        self._failed: Counter[str] = Counter()

    @property
    def done(self) -> int:
        return self._statuses.total()

    def told(self) -> str:
        counts = ", ".join(f"{count:,} of {status}" for status, count in sorted(self._statuses.items()))
        return counts + "".join(f", {count:,} {name}" for name, count in self._failed.items())

    def complaints(self) -> list[str]:
        """Return what must not happen: answers that say we broke, and no answer at all."""
        broken = [f"{count:,} answers of {status}" for status, count in self._statuses.items() if status >= 500]
        return broken + ([] if self._statuses[200] and self._statuses[202] else ["nothing was read or taken in"])

    def start(self, items: int) -> list[threading.Thread]:
        seeds = [random.Random(self._rng.random()) for _ in range(READERS)]
        loops: list[Callable[[], None]] = [lambda rng=rng: self._read(rng, items) for rng in seeds]  # type: ignore[misc]
        threads = [threading.Thread(target=loop, daemon=True) for loop in (*loops, self._upload, self._listen)]
        for thread in threads:
            thread.start()
        return threads

    def _read(self, rng: random.Random, items: int) -> None:
        """Read one page after the other; leave now and then, as people do."""
        while not self._stop.is_set():
            with contextlib.closing(http.client.HTTPConnection(*self._place, timeout=60)) as connection:
                for path in itertools.islice(paths(rng, items), rng.randint(1, RECONNECT_AFTER)):
                    if self._stop.wait(PAUSE_SECONDS) or not self._ask(connection, "GET", path, rng=rng):
                        break

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None,
        rng: random.Random | None = None,
    ) -> bool:  # fmt: skip
        headers = {"Accept": "text/html"}
        if body is not None:
            headers |= {"Authorization": f"Bearer {self._token}", "Content-Type": "application/x-ndjson"}
        elif rng is not None and rng.random() < 0.5:
            headers["Accept-Encoding"] = "gzip"
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._failed[type(error).__name__] += 1
            return False
        self._statuses[answer.status] += 1
        return True

    def _upload(self) -> None:
        """Send new items, and old ones that have changed, in batches."""
        rng = random.Random(self._rng.random())
        fresh = hn_items.items(10_000_000, seed=3)
        before: list[Any] = []
        while not self._stop.wait(UPLOAD_SECONDS):
            batch = [_moved(item) for item in itertools.islice(fresh, UPLOAD_ITEMS)]
            before = [*before[-2_000:], *batch]
            for item in rng.sample(before, min(5, len(before))):
                item.score = (item.score or 0) + 1
                batch.append(item)
            body = b"\n".join(msgspec.json.encode(item) for item in batch)
            with contextlib.closing(http.client.HTTPConnection(*self._place, timeout=60)) as connection:
                self._ask(connection, "POST", "/api/v1/hacker_news/items/bulk", body)

    def _listen(self) -> None:
        """Open live streams and leave without a word."""
        request = f"GET /api/v1/events HTTP/1.1\r\nHost: {self._place[0]}:{self._place[1]}\r\n\r\n".encode()
        while not self._stop.wait(STREAM_SECONDS):
            with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
                sockets = [
                    opened.enter_context(contextlib.closing(socket.create_connection(self._place, 10)))
                    for _ in range(3)
                ]
                for each in sockets:
                    each.sendall(request)
                for each in sockets:
                    each.recv(4096)


def _moved(item: Any) -> Any:
    """Give an uploaded item an id of its own, away from those that were there at the start."""
    distance = 50_000_000
    item.id += distance
    item.parent = item.parent + distance if item.parent is not None else None
    item.kids = [kid + distance for kid in item.kids] if item.kids is not None else None
    return item


def paths(rng: random.Random, items: int) -> Iterator[str]:
    """Yield addresses of every kind for ever, many of which nobody has asked before."""
    kinds: list[Callable[[], str]] = [
        lambda: rng.choice(PAGES),
        lambda: f"/api/v1/{rng.choice(API)}",
        lambda: rng.choice(MACHINES),
        lambda: f"/pipelines/{rng.choice(LISTS)}",
        lambda: f"/api/v1/{rng.choice(LISTS)}?limit={rng.randint(1, 500)}",
        lambda: f"/api/v1/hacker_news/items/{_id(rng, items)}",
        lambda: f"/api/v1/hacker_news/items/{_id(rng, items)}/thread",
        lambda: f"/pipelines/hacker_news/items/{_id(rng, items)}",
        lambda: f"/search?q={_words(rng)}",
        lambda: f"/api/v1/search?q={_words(rng)}&limit={rng.randint(1, 100)}",
        lambda: f"/feeds/{rng.choice(PIPELINES)}.{rng.choice(('rss', 'atom', 'json'))}?q={_words(rng)}",
        lambda: f"/nothing/{rng.getrandbits(64):x}",
        lambda: f"/?{rng.getrandbits(64):x}={rng.getrandbits(64):x}",
        lambda: f"/api/v1/status?{rng.getrandbits(32):x}=1",
        lambda: f"/items?pipeline=hacker_news&state=completed&x={rng.getrandbits(32)}",
    ]
    while True:
        yield rng.choice(kinds)()


def _id(rng: random.Random, items: int) -> int:
    return hn_items.FIRST_ID + rng.randrange(items)


def _words(rng: random.Random) -> str:
    syllables = [rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") for _ in range(rng.randint(1, 3))]
    return quote("".join(syllables) + rng.choice(("", " type:story", " score:>3", ' "so"')))


async def grow(world: Any, rng: random.Random) -> None:
    """Let stories, comments and articles appear, for the sources to find."""
    stories: list[int] = []
    for number in itertools.count():
        words = json.dumps([rng.getrandbits(32) for _ in range(40)])
        by = f"user{rng.randrange(500)}"
        if number % 4 == 0 or not stories:
            stories.append(world.hacker_news.add(type="story", by=by, title=f"Story {number}", score=1, text=words))
        else:
            world.hacker_news.add(type="comment", by=by, parent=rng.choice(stories[-20:]), text=f"<p>{words}")
        await asyncio.sleep(GROW_SECONDS)
