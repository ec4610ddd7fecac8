"""The whole of tidings on its sample world, served over real HTTP from a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tidings.app import App
from tidings.cli.demo import wiring_of
from tidings.cli.run import loops_for
from tidings.config import Server
from tidings.process.loops import run_loops
from tidings.sample.world import World

T = TypeVar("T")
START_SECONDS = 120


class Served:
    """`with Served(folder) as served:` finds and processes the whole sample world, then serves it at `served.url`.

    With `works` the loops go on in the background, so that buttons have consequences.
    """

    def __init__(
        self, folder: Path, *, is_demo: bool = True, works: bool = False, database_url: str | None = None
    ) -> None:
        self._database_url = database_url or f"sqlite:///{folder / 'served.db'}"
        self._is_demo = is_demo
        self._works = works
        self._ready = threading.Event()
        self._trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="served", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self.app: App
        self.url = ""

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._ready.wait(START_SECONDS), "the sample world was not served in time"
        if self._trouble is not None:
            raise self._trouble
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(30)
            assert not self._thread.is_alive(), "the server did not stop"

    def call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run something in the server's own loop and return its answer."""
        return asyncio.run_coroutine_threadsafe(make(), self._loop).result(30)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # the test that started us is told
            self._trouble = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with World(stands_still=True) as world, App(wiring_of(world, self._database_url)) as self.app:
            await self.app.poller.declare()
            names = list(self.app.store.source_list.current())
            await asyncio.gather(*(self.app.poller.ask(name, force=True) for name in names))
            await self.app.worker().until_idle(wait_for_due_seconds=8)
            role = "all" if self._works else "serve"
            loops = await loops_for(self.app, role, Server(port=0).model_dump(), is_demo=self._is_demo)
            assert self.app.address is not None
            self.url = self.app.address
            self._ready.set()
            await run_loops(loops, self._stop)
