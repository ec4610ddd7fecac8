"""A worker in a process of its own that dies, as by `kill -9`, at a named point around the POST to Discord.

python -m tests.acceptance.funding_worker '{"database_url": ..., "portal_url": ..., "webhook": ..., "dies": ...}'
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from tests.acceptance.funding_world import an_engine

from tidings.app import App
from tidings.model.contracts import Notifier, Receipt
from tidings.model.publication import Notice

DEAD = 9


class DoomedNotifier:
    """Dies just before the request, or just after the answer."""

    def __init__(self, inner: Notifier, dies: str) -> None:
        self._inner = inner
        self._dies = dies

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        if self._dies == "claimed":
            os._exit(DEAD)
        receipt = await self._inner.send(notice, delivery_id)
        if self._dies == "answered":
            os._exit(DEAD)
        return receipt

    def render(self, notice: Notice, delivery_id: str) -> Any:
        return self._inner.render(notice, delivery_id)


class DoomedExecutor:
    """Dies with the settlement written and not committed, or once the commit is answered."""

    def __init__(self, app: App, dies: str) -> None:
        self._inner = app.executor
        self._database = app.database
        self._settle = app.store.items.settle
        self._dies = dies

    async def read(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._inner.read(call, *args, **kwargs)

    async def write(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if call != self._settle:
            return await self._inner.write(call, *args, **kwargs)
        settled = await self._inner.write(self._doomed_settle, *args)
        if self._dies == "settled":
            os._exit(DEAD)
        return settled

    def _doomed_settle(self, settlements: Any) -> Any:
        with self._database.transaction():
            settled = self._settle(settlements)
            if self._dies == "settling":
                os._exit(DEAD)
            return settled


async def main(told: dict[str, str]) -> None:
    engine = an_engine(told["database_url"], told["portal_url"], told["webhook"], policy=told["policy"])  # type: ignore[arg-type]
    async with engine:
        app = engine.app
        channel = app.channels["eu"]
        app.channels["eu"] = dataclasses.replace(channel, notifier=DoomedNotifier(channel.notifier, told["dies"]))
        app.executor = DoomedExecutor(app, told["dies"])  # type: ignore[assignment]  # has the worker's part of it
        await app.worker(only_lane="notify").until_idle()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
