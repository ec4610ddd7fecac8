"""Store calls run at once, on the loop: between the call's arrival and its reply anything may happen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from simulation.database import Died
from simulation.faults import Faults
from tidings.model.errors import StoreUnavailable

T = TypeVar("T")


class Caller(Protocol):
    """The simulated process that calls."""

    @property
    def is_dead(self) -> bool:
        """Whether it was killed."""
        ...

    stalled_until: float
    """Until when it does nothing at all, as a stopped virtual machine."""

    @property
    def cut_until(self) -> float:
        """Until when it cannot reach the database."""
        ...


class InlineExecutor:
    """The `Executor` of one simulated process."""

    def __init__(self, caller: Caller, faults: Faults, on_reply: Callable[[str, tuple[Any, ...], Any], None]) -> None:
        self._caller = caller
        self._on_reply = on_reply
        self._faults = faults
        self._loop = asyncio.get_running_loop()

    async def write(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that writes."""
        try:
            await self._travel()
        except asyncio.CancelledError:
            # The call is on its way: the writer thread makes it although nobody waits for the reply any more.
            self._loop.call_soon(self._make_unheard, call, args, kwargs)
            raise
        self._reach()
        try:
            reply = call(*args, **kwargs)
            self._on_reply(call.__name__, args, reply)
            return reply
        finally:
            await self._travel()

    def _make_unheard(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._caller.is_dead and self._caller.cut_until <= self._loop.time():
            with contextlib.suppress(Died, Exception):
                call(*args, **kwargs)

    async def read(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that only reads; its reply is never late, which halves what a seed costs."""
        await asyncio.sleep(0)
        await self.stall()
        self._reach()
        return call(*args, **kwargs)

    async def _travel(self) -> None:
        if not self._caller.is_dead:
            await asyncio.sleep(self._faults.latency())
            if seconds := self._faults.stall():
                self._caller.stalled_until = max(self._caller.stalled_until, self._loop.time() + seconds)
        await self.stall()

    async def stall(self) -> None:
        """Wait while the process is stopped; nothing of a dead one goes on."""
        while self._caller.stalled_until > self._loop.time() and not self._caller.is_dead:  # noqa: ASYNC110  # may move
            await asyncio.sleep(self._caller.stalled_until - self._loop.time())
        if self._caller.is_dead:
            raise Died

    def _reach(self) -> None:
        if self._caller.cut_until > self._loop.time():
            raise StoreUnavailable("the database cannot be reached")
