"""The loops of one process: started together, stopped together."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from tidings.watch.logs import event
from tidings.watch.memory import trim_memory

COLLECT = (50_000, 20, 50)
STOP_SECONDS = 23.0
"""A process that is told to stop is gone after 25 s, whether the database answers or not."""

TOLD_SECONDS = 1.0
"""A stop that takes longer says what it waits for, and again whenever that has changed."""
WORDS = {
    "Poller.run": "looks at sources under way",
    "Hints.run": "hints from other processes",
    "StoryLoop.run": "grouping stories",
    "Copier.run": "the last copy of the database",
    "_reload_loop": "hearing of a reload",
    "Worker.run": "steps under way",
    "Sweeper.run": "tidying up",
    "serve_loop": "answers under way",
    "listen": "answers under way",
    "AlertLoop.run": "the health check",
    "FollowLoop.run": "the search index",
    "Mirror.run": "writes to a mirror",
}

Loop = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


async def run_loops(loops: list[Loop], stop: asyncio.Event) -> None:
    """Run loops until `stop` is set; the first that fails stops the others. One that does not end in time is ended."""
    # Batches make many objects and no cycles. With the default thresholds, the collector's search for cycles took 5 %
    # of the time of a bulk load.
    gc.set_threshold(*COLLECT)
    tasks = [asyncio.create_task(loop(stop), name=_words_for(loop)) for loop in (*loops, trim_memory)]
    running = asyncio.gather(*tasks)
    either: set[asyncio.Future[Any]] = {running, asyncio.create_task(stop.wait())}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
    late = await _wait_for(tasks)
    for task in late:
        task.cancel()
    if late:
        event("ended before it was done", level=logging.WARNING, loops=len(late))
        await asyncio.wait(late, timeout=1)
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def _wait_for(tasks: list[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Give the loops their time to end, saying what is still waited for; return those that did not."""
    ends_at = asyncio.get_running_loop().time() + STOP_SECONDS
    told: list[str] = []
    late = set(tasks)
    while late and (left := ends_at - asyncio.get_running_loop().time()) > 0:
        _, late = await asyncio.wait(late, timeout=min(TOLD_SECONDS, left))
        names = sorted({task.get_name() for task in late})
        if names and names != told:
            event("stopping", waiting_for=", ".join(names), seconds_at_most=round(STOP_SECONDS))
            told = names
    return late


def _words_for(loop: Loop) -> str:
    """Say in words what a loop does, for people who wait for its end."""
    name = getattr(loop, "__qualname__", type(loop).__qualname__)
    return WORDS.get(name.partition(".<locals>")[0], name)
