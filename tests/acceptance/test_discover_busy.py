"""`tidings discover` while another process asks one of the sources."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.support.commands import tidings

from tidings.sample.serving import StandIn
from tidings.store.db.database import connect
from tidings.store.db.presence import present
from tidings.store.sources import ScheduleStore, Turn

FEED = """<rss version="2.0"><channel><title>{name}</title><link>https://example.com</link><description>d</description>
<item><title>{name} one</title><link>https://example.com/{name}/1</link><guid>{name}1</guid></item></channel></rss>"""


async def feed(request: Request) -> Response:
    return Response(FEED.format(name=request.path_params["name"]), media_type="application/rss+xml")


async def test_the_other_sources_are_asked_when_one_is_busy(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with StandIn(Starlette(routes=[Route("/{name}", feed)])) as site:
        place = site.url.removeprefix("http://")
        (tmp_path / "tidings.toml").write_text(
            f'database_url = "{database_url}"\nper_host_delay_seconds = 0\nloopback_allowed = ["{place}"]\n'
            f'[pipelines.feeds]\nfeeds = [{{url = "{site.url}/ada"}}, {{url = "{site.url}/bob"}}]\n'
        )
        first = await asyncio.to_thread(tidings, "discover", "feeds", "--json")
        assert first.code == 0, first.err
        busy, other = (run["source"] for run in json.loads(first.out))
        database = connect(database_url)
        schedules = ScheduleStore(database)
        with present(database), ThreadPoolExecutor(1) as pool:
            turn = schedules.claim(busy, "another process", 5, force=True)
            assert turn is not None
            ended = Event()
            holding = pool.submit(hold, schedules, turn, ended)
            second = await asyncio.to_thread(tidings, "discover", "feeds", "--json")
            ended.set()
            holding.result()
        database.close()

    assert second.code == 1
    assert [run["source"] for run in json.loads(second.out)] == [other]
    assert f"{busy} is being asked by another process since" in second.err


def hold(schedules: ScheduleStore, turn: Turn, ended: Event) -> None:
    while not ended.wait(0.2):
        schedules.beat(turn, 5)
