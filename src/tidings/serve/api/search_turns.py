"""Searches take turns: few run at once, apart from the threads that read the store, and nobody waits without end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from tidings.model.errors import SearchTooSlow
from tidings.serve.http.problems import Problem

T = TypeVar("T")
AT_ONCE = 4
WAITING_MAX = 64
"""How many requests may have a turn or wait for one."""
SECONDS_MAX = 6.0
"""How long one waits for its answer. The index gives up a little earlier by itself, where it can."""


class SearchTurns:
    """Runs calls of the search. The engine cannot be interrupted: a turn that took too long ends when it ends.

    Its reader is told in time all the same, and only so many run at once: whatever they ask, the rest of the server
    goes on.
    """

    def __init__(
        self, *, at_once: int = AT_ONCE, waiting_max: int = WAITING_MAX, seconds_max: float = SECONDS_MAX
    ) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._waiting, self._waiting_max, self._seconds_max = 0, waiting_max, seconds_max

    async def take(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call in a thread of its own; a Problem where there is no turn, or no answer in time."""
        if self._waiting >= self._waiting_max:
            raise _problem("Too many searches are under way.")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds_max):
                await self._free.acquire()
                return await self._started(partial(call, *args, **kwargs))
        except (TimeoutError, SearchTooSlow):
            raise _problem("This search took too long and was given up.") from None
        finally:
            self._waiting -= 1

    def _started(self, call: Callable[[], T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        # No pool: the interpreter waits for a pool's threads at its end, and one of these may take long.
        thread = threading.Thread(target=self._run, args=(call, loop, answer), name="search", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._free.release()
            raise _problem("No thread can be started for this search.") from None
        return answer

    def _run(self, call: Callable[[], T], loop: asyncio.AbstractEventLoop, answer: asyncio.Future[T]) -> None:
        done: Callable[[], None]
        try:
            done = partial(answer.set_result, call())
        except BaseException as error:  # noqa: BLE001  # the caller gets it
            done = partial(answer.set_exception, error)
        try:
            loop.call_soon_threadsafe(self._end, answer, done)
        except RuntimeError:
            return  # The server has stopped meanwhile.

    def _end(self, answer: asyncio.Future[T], done: Callable[[], None]) -> None:
        self._free.release()
        if not answer.done():
            done()


def _problem(detail: str) -> Problem:
    helps = "Ask for less: more words, fewer prefixes (word*) and fewer OR; or try again shortly."
    return Problem(503, detail, helps=helps, headers={"Retry-After": "5"})
