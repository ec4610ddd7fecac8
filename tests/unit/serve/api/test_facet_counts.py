"""Counts of a collection too large to be held cover all of its cards."""

from __future__ import annotations

import pytest
from tests.support.waiting import until
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import Story, World

from tidings.serve.api import facet_counts, listings
from tidings.serve.application import build


async def test_counts_cover_every_card_not_only_the_newest(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listings, "HELD_MAX", 1)
    monkeypatch.setattr(facet_counts, "SCANNED_MAX", 4)
    monkeypatch.setattr(facet_counts, "_PAGE", 2)
    world.add_stories([Story(id=100 + n, type="story", title=f"Story {n}", score=1) for n in range(30)])
    client = Client(build(world.backend()))

    first = (await client.get("/api/v1/hacker_news/items?limit=1")).json

    async def counted() -> bool:
        answer = (await client.get("/api/v1/hacker_news/items?limit=1")).json
        return answer["type_counts"]["story"] == 31 and answer["warnings"] == []

    assert sum(first["type_counts"].values()) == 4
    assert first["warnings"] == ["counts cover the newest 4 cards; all are being counted"]
    await until(counted)
