"""The world of the funding tests: stand-ins of portal and Discord, and the engine between them, on one clock."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.engine import Engine, discord_channel

from tidings.model.publication import Calm, Route, Texts
from tidings.model.views import RunView
from tidings.pipelines.eu_funding import Settings, build
from tidings.publish.sending import Policy
from tidings.publish.texts import NO_TEXTS
from tidings.sample.discord import DiscordStandIn
from tidings.sample.eu_portal import EuPortal
from tidings.sample.serving import StandIn

HARVEST = datetime(2026, 8, 22, 12, tzinfo=UTC)
"""When the recorded pages were read."""
OPEN, CLOSED = "31094502", "31094503"
PIPELINE = "eu_funding"
NO_CALM = Calm()
WORDS = (
    "Boats that pass a seal colony at dawn without waking anybody are wanted in every harbour of the union, and soon. "
)


class World:
    """A portal, a channel and the engine. Everything keeps the database's time."""

    def __init__(self, portal: EuPortal) -> None:
        self.portal = portal
        self.discord = DiscordStandIn(now=self.now, hang_seconds=2)
        self.engine: Engine | None = None
        portal.now = self.now

    def now(self) -> float:
        return self.opened.now_ms() / 1000

    @property
    def opened(self) -> Engine:
        assert self.engine is not None
        return self.engine

    async def crawl(self) -> RunView:
        (run,) = await self.opened.discover()
        return run

    async def settle_down(self, *, hours: float = 2) -> None:
        """Work until nothing waits to be summarized or sent, moving the clock instead of waiting."""
        until = self.now() + hours * 3600
        while True:
            await self.opened.work_until_idle()
            waits = self.opened.store.items.next_due_ms([PIPELINE], ("ai", "notify"))
            if waits is None or self.now() + waits / 1000 > until:
                return
            self.opened.advance_clock(seconds=max(waits / 1000, 1.0))

    def titles(self) -> list[str]:
        """What the channel shows, oldest first."""
        return [posted.body["embeds"][0]["title"].replace("\\", "") for posted in self.discord.messages]

    def sent_in_order(self) -> bool:
        """Tell whether messages came in the order their deliveries were born."""
        born = {d.key: d.id for d in self.opened.store.item_views.deliveries(limit=10_000)}
        by_id = {body["id"]: born[row.key] for row in self.opened.items("delivery") for body in [self.body(row.key)]}
        order = [by_id[posted.delivery_id] for posted in self.discord.messages]
        return order == sorted(order)

    def body(self, key: str) -> dict[str, Any]:
        """Return the body of one delivery."""
        return dict(self.opened.item("delivery", key).body)


@contextlib.asynccontextmanager
async def a_world(
    database_url: str,
    portal: EuPortal,
    *,
    at: datetime = HARVEST,
    query: str = "",
    policy: Policy = "at-least-once",
    settings: dict[str, Any] | None = None,
    calm: Calm = NO_CALM,
    texts: Texts = NO_TEXTS,
    **wiring: Any,
) -> AsyncIterator[World]:
    """Open a world at a time."""
    world = World(portal)
    async with StandIn(portal.app) as portal_server, StandIn(world.discord.app) as discord_server:
        webhook = world.discord.webhook_url(discord_server.url)
        async with an_engine(
            database_url,
            portal_server.url,
            webhook,
            query=query,
            policy=policy,
            settings=settings,
            calm=calm,
            texts=texts,
            **wiring,
        ) as engine:
            world.engine = engine
            engine.advance_clock(seconds=at.timestamp() - time.time())
            yield world


def an_engine(
    database_url: str,
    portal_url: str,
    webhook: str,
    *,
    query: str = "",
    policy: Policy = "at-least-once",
    settings: dict[str, Any] | None = None,
    calm: Calm = NO_CALM,
    texts: Texts = NO_TEXTS,
    **wiring: Any,
) -> Engine:
    """Return the engine of the funding pipeline, pointed at stand-ins."""
    pages_url = f"{portal_url}/info/funding-tenders/opportunities"
    chosen = Settings(base_url=portal_url, pages_url=pages_url, pause_seconds=0, **(settings or {}))
    port = int(webhook.split(":")[2].partition("/")[0])
    return Engine(
        database_url,
        [build(chosen)],
        endpoints=[portal_url],
        loopback=[("127.0.0.1", port)],
        channels=[discord_channel("eu", webhook, policy)],
        routes=[Route(PIPELINE, "eu", query, calm=calm, texts=texts)],
        **wiring,
    )


def recorded(samples: Path) -> list[dict[str, Any]]:
    """Return the recorded results, each once."""
    names = [f"sedia_search_open_page{n}.json" for n in range(1, 6)] + ["sedia_search_forthcoming_rebuilt.json"]
    rows = [row for name in names for row in json.loads((samples / "eu_funding" / name).read_text())["results"]]
    return list({row["reference"]: row for row in rows}.values())


def a_result(number: int, *, now: datetime = HARVEST, described: bool = True, **metadata: list[str]) -> dict[str, Any]:
    """Invent a search result that opened yesterday."""
    known = {
        "identifier": [f"LIFE-2026-{number:05}"],
        "title": [f"Call {number}"],
        "type": ["1"],
        "status": [OPEN],
        "language": ["en"],
        "frameworkProgramme": ["43252405"],
        "startDate": [day(now, -1)],
        "deadlineDate": [day(now, 90, "17:00")],
        "deadlineModel": ["single-stage"],
        **({"descriptionByte": [f"<p>Number {number}. {WORDS * 3}</p>"]} if described else {}),
        **metadata,
    }
    return {"reference": f"{number}TOPICSen", "url": "", "summary": f"Call {number}", "metadata": known}


def day(now: datetime, days: int, hour: str = "00:00") -> str:
    """Write a day the portal's way."""
    return f"{(now + timedelta(days=days)).date().isoformat()}T{hour}:00.000+0000"
