"""The real search over a store under test, always caught up: what was settled is found by the next search."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tidings.follow.follower import FollowLoop
from tidings.follow.search.follower import SearchFollower
from tidings.follow.search.index import SearchIndex
from tidings.model.contracts import Found, Hit
from tidings.model.pipeline import Pipeline
from tidings.model.query_tree import Part
from tidings.store.store import Store


class _Direct:
    """An executor that runs calls where it stands."""

    async def write(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    read = write


class FollowedSearch:
    """An index in memory that follows the store's stream before each question."""

    def __init__(self, store: Store, pipelines: Mapping[str, Pipeline], now_ms: Callable[[], int]) -> None:
        self.index = SearchIndex(clock=now_ms)
        follower = SearchFollower(self.index, store.changes, pipelines, _Direct())
        self._loop = FollowLoop(follower, store.changes, _Direct(), list(pipelines), "test", now_ms)
        self.is_stalled = False
        """The index knows nothing of what happens from now on, as one that lags."""

    def catch_up(self) -> None:
        """Follow to the end, in a thread of its own: the caller's may already run an event loop."""
        if not self.is_stalled:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(asyncio.run, self._loop.catch_up()).result()

    def search(self, root: Part, **more: Any) -> Found:
        """Search what is there now."""
        self.catch_up()
        return self.index.search(root, **more)

    def suggest(self, text: str, *, pipeline: str | None = None, limit: int = 10) -> list[str]:
        """Suggest by what is there now."""
        self.catch_up()
        return self.index.suggest(text, pipeline=pipeline, limit=limit)

    def similar(self, pipeline: str, kind: str, key: str, *, limit: int = 10) -> list[Hit]:
        """Find similar ones among what is there now."""
        self.catch_up()
        return self.index.similar(pipeline, kind, key, limit=limit)
