"""A process that only follows: `python -m tests.support.follow_process URL FOLDER`, until it is killed."""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing
from pathlib import Path

from tests.support import example
from tidings.follow.search.follower import SearchFollower
from tidings.follow.search.index import SearchIndex
from tidings.parts import follow_loop
from tidings.store.db.database import connect
from tidings.store.db.executor import StoreExecutor
from tidings.store.store import open_store


async def follow(url: str, folder: str) -> None:
    """Follow a store of the example pipeline into an index."""
    pipelines = {"example": example.pipeline()}
    store = open_store(connect(url), pipelines)
    with closing(StoreExecutor(store.database)) as executor, closing(SearchIndex(Path(folder))) as index:
        loop = follow_loop(SearchFollower(index, store.changes, pipelines, executor), store, executor, "child")
        loop.batch = 5
        await loop.run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(follow(*sys.argv[1:]))
