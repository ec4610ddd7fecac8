"""A process that only groups: `python -m tests.support.story_process URL`, until it is killed."""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing

from tests.support.news import pipelines, story_loop
from tidings.follow.stories import follower
from tidings.store.db.database import connect
from tidings.store.db.executor import StoreExecutor
from tidings.store.store import open_store


async def follow(url: str) -> None:
    named = pipelines()
    store = open_store(connect(url), named)
    with closing(StoreExecutor(store.database)) as executor:
        loop = story_loop(store, named, executor, "child")
        loop.batch = follower.BATCH = 3
        await loop.run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(follow(*sys.argv[1:]))
