"""An event loop on virtual time: where nothing is ready, it jumps to the next timer instead of waiting for it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context, ContextVar
from typing import Any, Protocol


class Owner(Protocol):
    """What tasks belong to: a simulated process."""

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Take note of a task that was started inside."""
        ...


OWNER: ContextVar[Owner | None] = ContextVar("owner", default=None)
"""The simulated process that runs now; tasks inherit it."""


class Deadlock(Exception):
    """Nothing is ready and no timer is set: nothing will ever happen again."""


class NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set depends on its number, not on where it lies in memory: the trace must repeat."""

    def __init__(self, coro: Coroutine[Any, Any, Any], number: int, **more: Any) -> None:
        self._number = number
        super().__init__(coro, **more)

    def __hash__(self) -> int:
        return self._number


class _Selector:
    """Stands where the loop would wait for sockets."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock("nothing is ready and no timer is set")
        self._loop.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """One thread, no sockets, no waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._numbers = itertools.count(1)
        # What the base class asks for; its own subclasses set the same two names.
        self._selector = _Selector(self)
        self._clock_resolution = 1e-6
        self.set_task_factory(self._start)  # type: ignore[arg-type]  # the stub knows no context argument

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self.now

    def run_in_executor(  # type: ignore[override]  # a future is what callers await
        self, _executor: Executor | None, call: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run the call at once: there are no threads."""
        future = self.create_future()
        try:
            future.set_result(call(*args))
        except Exception as error:  # noqa: BLE001  # the one who awaits gets it
            future.set_exception(error)
        return future

    def _start(
        self, _loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = NumberedTask(coro, next(self._numbers), loop=self, context=context)
        if (owner := OWNER.get()) is not None:
            owner.adopt(task)
        return task

    def _process_events(self, _events: list[Any]) -> None:
        return None

    def _write_to_self(self) -> None:
        return None
