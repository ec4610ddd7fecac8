"""How the loops reach the store, which is synchronous."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Carries synchronous store calls off the event loop. Writes are answered once they are durable."""

    async def write(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that writes."""
        ...

    async def read(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a call that only reads."""
        ...
