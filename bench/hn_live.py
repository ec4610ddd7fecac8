"""Hacker News live: how long from an item's existence to its being found, and what that costs the API.

A real `tidings run` listens to a stand-in of the API; this process adds items at a steady rate and searches for them.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from tests.support.firebase import FirebaseApi
from tests.support.processes import fleet, free_port
from tests.support.waiting import until

from tidings.sample.serving import StandIn

FIRST = 30
"""Items that are there before."""
LOOK_SECONDS = 0.1
FOUND_MAX = 100


class Sighting(NamedTuple):
    """When an item was first found, and how often it had been asked for by then."""

    at: float
    requests: int


@dataclass(frozen=True)
class LiveFigures:
    """What was measured at one rate."""

    items: int
    waits: list[float]
    """Seconds from an item's existence to its being found, in order."""
    requests_first: float
    """Requests an item until it was found."""
    requests_later: float
    """Requests an item after that: `updates` names what is new, which is then read again a little later."""
    most_at_once: int

    def wait(self, share: float) -> float:
        """Return the wait that so large a share stays below."""
        return self.waits[min(len(self.waits) - 1, int(len(self.waits) * share))]


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure a quiet day's rate, and a hundred times that."""
    rows: list[dict[str, Any]] = []
    for a_minute, count in ((20, 8 if quick else 40), (2_000, 300 if quick else 2_000)):
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            found = asyncio.run(measure(Path(folder), f"sqlite:///{folder}/a.db", a_minute, count))
        what = f"Hacker News live, {a_minute} items a minute:"
        rows += [
            {"what": f"{what} to be found, median", "value": round(found.wait(0.5), 2), "unit": "s"},
            {"what": f"{what} to be found, 99th of 100", "value": round(found.wait(0.99), 2), "unit": "s"},
            {"what": f"{what} requests at first sight", "value": found.requests_first, "unit": "an item"},
            {"what": f"{what} later readings", "value": found.requests_later, "unit": "an item"},
            {"what": f"{what} requests at once, at most", "value": found.most_at_once, "unit": "requests"},
        ]
    return rows


async def measure(folder: Path, database_url: str, a_minute: int, count: int) -> LiveFigures:
    """Add so many items at a rate; return how long each took to be found."""
    api, port = FirebaseApi(seed=a_minute), free_port()
    api.add(*range(1, FIRST + 1), text="tide")
    async with StandIn(api.app) as server, fleet(folder) as processes:
        (folder / "tidings.toml").write_text(
            f"database_url = '{database_url}'\n[server]\nport = {port}\n"
            f"[pipelines.hacker_news]\nbase_url = '{server.url}/v0'\n"
        )
        running = await processes.start("run", "--role", "all")
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            await until(lambda: api.streams == 2, watching=(running,))
            found: dict[int, Sighting] = {}
            await _look_for(client, api, found, FIRST)
            api.most_at_once = 0
            born: dict[int, float] = {}
            looking = asyncio.create_task(_look_for(client, api, found, FIRST + count))
            await _add(api, born, a_minute, count)
            await looking
    waits = sorted(max(0.0, found[number].at - born[number]) for number in born)
    first = sum(found[number].requests for number in born)
    later = sum(api.requests_for(number) for number in born) - first
    return LiveFigures(count, waits, round(first / count, 2), round(later / count, 2), api.most_at_once)


async def _add(api: FirebaseApi, born: dict[int, float], a_minute: int, count: int) -> None:
    """Add items at a steady rate; `updates` names each of them, as the API does with what is new."""
    started = time.monotonic()
    for index in range(count):
        await asyncio.sleep(max(0.0, started + index * 60 / a_minute - time.monotonic()))
        number = FIRST + 1 + index
        born[number] = time.monotonic()
        api.add(number, text="tide")
        api.change(number)


async def _look_for(client: aiohttp.ClientSession, api: FirebaseApi, found: dict[int, Sighting], last: int) -> None:
    """Search until every item up to the last was found; note when each was first found."""
    while len(found) < last:
        cursor: str | None = None
        while True:
            query = {"q": "tide", "order": "newest", "limit": str(FOUND_MAX)} | ({"cursor": cursor} if cursor else {})
            answer = await _answer(client, query)
            numbers = [int(hit["id"]) for hit in answer.get("hits", [])]
            at = time.monotonic()
            new = [number for number in numbers if number not in found]
            found.update({number: Sighting(at, api.requests_for(number)) for number in new})
            cursor = answer.get("next_cursor")
            if not new or not cursor:
                break
        await asyncio.sleep(LOOK_SECONDS)


async def _answer(client: aiohttp.ClientSession, query: dict[str, str]) -> dict[str, Any]:
    """Search; nothing is found while the process starts."""
    try:
        async with client.get("/api/v1/search", params=query) as answer:
            found: dict[str, Any] = await answer.json() if answer.status == 200 else {}
            return found
    except aiohttp.ClientConnectionError:
        return {}
