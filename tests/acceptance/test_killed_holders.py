"""What a killed process costs: its sources are asked again, and its items taken up again, in seconds."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from tests.support.commands import tidings
from tests.support.postgres import new_postgres_database
from tests.support.processes import fleet
from tests.support.waiting import until

from tidings.sample.serving import StandIn

pytestmark = pytest.mark.slow

LOOK_SECONDS = 15
FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>Harbor</title><link>{url}/</link>
<item><title>Low water</title><link>{url}/page</link><guid>low-water</guid>
<description>Mind the sill.</description></item>
</channel></rss>"""
PAGE = "<html><head><title>Low water</title></head><body><article>" + "<p>The tide is out today.</p>" * 20
"""Enough text for an article."""


class Site:
    """A feed and the page of its only entry; both can be told to keep those who ask waiting."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: dict[str, list[float]] = {"/feed": [], "/page": []}
        self.hangs: set[str] = set()
        self.never = asyncio.Event()
        self.app = Starlette(routes=[Route(path, self._answer) for path in self.asked])

    async def _answer(self, request: Request) -> Response:
        path = request.url.path
        self.asked[path].append(time.monotonic())
        if path in self.hangs:
            await self.never.wait()
        if path == "/feed":
            return Response(FEED.format(url=self.url), media_type="application/rss+xml")
        return HTMLResponse(PAGE)


@asynccontextmanager
async def site(folder: Path, database_url: str, *hangs: str, settings: str = "") -> AsyncIterator[Site]:
    made = Site()
    made.hangs.update(hangs)
    async with StandIn(made.app) as server:
        made.url = server.url
        (folder / "tidings.toml").write_text(
            f'database_url = "{database_url}"\nloopback_allowed = ["127.0.0.1:{server.port}"]\nobey_robots = false\n'
            f"{settings}\n[pipelines.feeds]\n"
            f'feeds = [{{url = "{server.url}/feed", full_text = true}}]\n'
        )
        yield made


async def test_a_killed_poller_that_is_started_again_asks_again_at_once_on_sqlite(tmp_path: Path) -> None:
    async with site(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", "/feed") as world, fleet(tmp_path) as processes:
        poller = await processes.start("run", "--role", "discover")
        await until(lambda: len(world.asked["/feed"]) == 1, watching=(poller,))
        await poller.kill()
        killed = time.monotonic()
        poller = await processes.start("run", "--role", "discover")
        await until(lambda: len(world.asked["/feed"]) == 2, watching=(poller,))

    assert world.asked["/feed"][1] - killed < LOOK_SECONDS


async def test_of_two_pollers_one_takes_over_from_the_killed_one(tmp_path: Path, postgres_server: str) -> None:
    async with site(tmp_path, new_postgres_database(postgres_server), "/feed") as world, fleet(tmp_path) as processes:
        first = await processes.start("run", "--role", "discover")
        await until(lambda: len(world.asked["/feed"]) == 1, watching=(first,))
        second = await processes.start("run", "--role", "discover")
        await until(lambda: second.has_started, watching=(first, second))
        await first.kill()
        killed = time.monotonic()
        await until(lambda: len(world.asked["/feed"]) == 2, watching=(second,))

    assert world.asked["/feed"][1] - killed < LOOK_SECONDS


async def test_asking_by_hand_tells_busy_from_paused(tmp_path: Path) -> None:
    config = ("--config", str(tmp_path / "tidings.toml"))
    async with site(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", "/feed") as world, fleet(tmp_path) as processes:
        poller = await processes.start("run", "--role", "discover")
        await until(lambda: len(world.asked["/feed"]) == 1, watching=(poller,))
        busy = await asyncio.to_thread(tidings, "discover", "feeds", *config)
        await asyncio.to_thread(tidings, "pause", "--pipeline", "feeds", "--reason", "spring cleaning", *config)
        paused = await asyncio.to_thread(tidings, "discover", "feeds", *config)

    assert busy.code == paused.code == 1
    assert re.search(r"is being asked by another process since \d\d:\d\d:\d\d UTC; its turn lasts until", busy.err)
    assert "the pipeline feeds is paused (spring cleaning); `tidings resume --pipeline feeds`" in paused.err


async def test_items_of_a_killed_worker_are_taken_up_at_once_on_sqlite(tmp_path: Path) -> None:
    config = ("--config", str(tmp_path / "tidings.toml"))
    async with site(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", "/page") as world, fleet(tmp_path) as processes:
        await asyncio.to_thread(tidings, "discover", "feeds", *config)
        worker = await processes.start("work")
        await until(lambda: len(world.asked["/page"]) == 1, watching=(worker,))
        await worker.kill()
        killed = time.monotonic()
        worker = await processes.start("work")
        await until(lambda: len(world.asked["/page"]) == 2, watching=(worker,))
        (taken,) = [event for event in worker.events() if event["event"] == "taken over"]
        assert await worker.stop() == 0

    assert world.asked["/page"][1] - killed < LOOK_SECONDS
    assert taken["items"] == 1


async def test_items_of_a_killed_worker_are_free_for_others_after_a_minute(
    tmp_path: Path, postgres_server: str
) -> None:
    """The other worker's clock shows a minute more, which spares us the wait."""
    config = ("--config", str(tmp_path / "tidings.toml"))
    async with site(tmp_path, new_postgres_database(postgres_server), "/page") as world, fleet(tmp_path) as processes:
        await asyncio.to_thread(tidings, "discover", "feeds", *config)
        worker = await processes.start("work")
        await until(lambda: len(world.asked["/page"]) == 1, watching=(worker,))
        await worker.kill()
        early = await processes.start("work", "--until-idle", TIDINGS_CLOCK_OFFSET_MS="10000")
        await until(lambda: not early.is_alive)
        assert len(world.asked["/page"]) == 1, "it may still be alive"
        later = await processes.start("work", TIDINGS_CLOCK_OFFSET_MS="61000")
        await until(lambda: len(world.asked["/page"]) == 2, watching=(later,))
