"""Sources that hear of changes by themselves, between the times of their schedule."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol, runtime_checkable

from tidings.model.contracts import Kit
from tidings.model.pipeline import Source


@runtime_checkable
class Live(Source, Protocol):
    """A source that listens: each signal is given back to it as the option `signal` of a run that reads only that."""

    def signals(self, kit: Kit) -> AsyncIterator[Mapping[str, Any]]:
        """Yield what is to be asked for, all that was heard since the signal before in one; never end."""
        ...


@runtime_checkable
class Granting(Source, Protocol):
    """A source that fetches single cards when they are wished for: the option `signal` holds their ids as `wishes`."""

    @property
    def grants(self) -> str:
        """The collection whose cards it fetches."""
        ...
