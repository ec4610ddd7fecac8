"""tidings for one source in a time that somebody else keeps: asks and works once for each moment, until it is killed.

`python -m tests.acceptance.day_process DATABASE_URL BASE_URL` reads the moment from BASE_URL/moment as JSON
(`{"number": 7, "ms": 1260000}`), moves the database's clock there, asks the source, does the work, and tells it by
BASE_URL/done/7. Everything is as in `tidings run` but the clock and who calls the loops.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import urllib.request
from typing import Any

from tests.support.engine import Engine
from tests.support.hacker_news import QUICK

from tidings.pipelines import hacker_news
from tidings.pipelines.hacker_news import Settings

LOOK_SECONDS = 0.005
ITEM_SECONDS = 2.0


async def live(database_url: str, base_url: str) -> None:
    """Live through one moment after the other."""
    settings = Settings.model_validate({"base_url": f"{base_url}/v0", "streams": False})
    declared = hacker_news.build(settings)
    declared.sources[0].item_seconds = ITEM_SECONDS  # type: ignore[attr-defined]
    async with Engine(database_url, [declared], endpoints=[base_url], limits=QUICK) as engine:
        before = -1
        while True:
            moment = await asyncio.to_thread(_get, f"{base_url}/moment")
            if moment["number"] == before:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            before = moment["number"]
            engine.offset_ms = moment["ms"]
            engine.advance_clock(seconds=0)
            await engine.sweep()
            work = asyncio.create_task(_work(engine))
            await engine.discover()
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
            await engine.work_until_idle()
            await asyncio.to_thread(_get, f"{base_url}/done/{before}")


async def _work(engine: Engine) -> None:
    """Work while the source is asked, as both do in one process."""
    while True:
        await engine.work_until_idle()
        await asyncio.sleep(LOOK_SECONDS)


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:  # a stand-in on loopback
        return json.load(answer)


if __name__ == "__main__":
    asyncio.run(live(sys.argv[1], sys.argv[2]))
