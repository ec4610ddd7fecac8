"""The news world on loopback, and a kit of real parts that reaches it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.clock import ManualClock

from tidings.model.contracts import Kit
from tidings.net.client import FetchLimits, Web
from tidings.process.enrich.enricher import MeteredEnricher
from tidings.process.extract.extractor import ChildExtractor
from tidings.process.memory_ledger import MemoryLedger
from tidings.sample.news import News
from tidings.sample.serving import StandIn

NOW_MS = 1_789_000_000_000
OUTLETS: list[dict[str, Any]] = [
    {"id": "post", "name": "The Post", "host": "post.example", "rss_path": "/rss", "menu": ["Home"]},
    {"id": "gazette", "name": "Gazette", "host": "gazette.example", "rss_path": "/feed", "footer": "No advice."},
]


@dataclass
class Town:
    """A news world, where it is served, and the kit to visit it with."""

    world: News
    url: str
    kit: Kit
    clock: ManualClock
    ledger: MemoryLedger
    extractor: ChildExtractor


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def town(clock: ManualClock) -> AsyncIterator[Town]:
    world = News(OUTLETS, now_ms=clock.now_ms)
    ledger = MemoryLedger(clock)
    async with StandIn(world.app) as server, ChildExtractor() as extractor:
        web = Web(
            user_agent="tidings-test/1",
            endpoints=[server.url],
            loopback_allowed=frozenset({("127.0.0.1", server.port)}),
            per_host_delay_seconds=0,
            limits=FetchLimits(first_byte_seconds=1, total_seconds=5),
            clock=clock,
        )
        async with web:
            kit = Kit(fetcher=web, extractor=extractor, enricher=MeteredEnricher(ledger), ledger=ledger, clock=clock)
            yield Town(world, server.url, kit, clock, ledger, extractor)
