"""The process a command runs in: its event loop, the signals that stop it, how long a stop may take."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import Any, TypeVar

from tidings.app import App
from tidings.cli.output import end
from tidings.model.errors import TidingsError
from tidings.store.db.database import wait_for_server
from tidings.store.upkeep.preflight import marked, vet
from tidings.watch import logs
from tidings.watch.memory import bound_memory
from tidings.wiring import Wiring

T = TypeVar("T")
LEAVE_SECONDS = 25.0
"""What a stop may take."""


def run_app(wiring: Wiring, use: Callable[[App], Coroutine[Any, Any, T]], *, stays: bool = False) -> T:
    """Open the application, use it, close it; mistakes end with a message.

    A process that `stays` looks at the database before anything is written, and leaves a mark while it works.
    """

    async def main() -> T:
        async with App(wiring) as app:
            with marked(app.database) if stays else nullcontext():
                return await use(app)

    try:
        if stays:
            wait_for_server(wiring.database_url)
        for note in vet(wiring.database_url) if stays else ():
            logs.event(note, level=logging.WARNING)
        return run_fast(main())
    except TidingsError as error:
        end(error)


def run_fast(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, which serves about a third more requests than the standard loop, where there is one."""
    bound_memory()
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM, SIGINT and SIGHUP set; a second signal changes nothing."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # `nohup` ignores SIGHUP for us: the process is meant to outlive its terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, begin_to_stop, stop)
    return stop


def begin_to_stop(stop: asyncio.Event) -> None:
    """Set the event, and end the process by force where it takes too long."""
    if not stop.is_set():
        stop.set()
        last = threading.Timer(LEAVE_SECONDS, _leave)
        last.daemon = True
        last.start()


def _leave() -> None:
    """End although a thread still runs; whatever it held runs out by itself."""
    logs.event("stopped without waiting for what was still running", level=logging.WARNING)
    os._exit(1)
