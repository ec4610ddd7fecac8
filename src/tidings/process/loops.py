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

Loop = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


async def run_loops(loops: list[Loop], stop: asyncio.Event) -> None:
    """Run loops until `stop` is set; the first that fails stops the others. One that does not end in time is ended."""
    # Batches make many objects and no cycles. With the default thresholds, the collector's search for cycles took 5 %
    # of the time of a bulk load.
    gc.set_threshold(*COLLECT)
    tasks = [asyncio.create_task(loop(stop)) for loop in (*loops, trim_memory)]
    running = asyncio.gather(*tasks)
    either: set[asyncio.Future[Any]] = {running, asyncio.create_task(stop.wait())}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
    _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
    for task in late:
        task.cancel()
    if late:
        event("ended before it was done", level=logging.WARNING, loops=len(late))
        await asyncio.wait(late, timeout=1)
    with contextlib.suppress(asyncio.CancelledError):
        await running
