"""How people add, change and remove sources while everything runs, and try one before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from tidings.model.previews import Trial
from tidings.model.source_definition import NamedDefinition, SourceDefinition


class SourceChanges(Protocol):
    """The sources of the store. Each write raises BadInput saying what is wrong with what was asked."""

    def named(self, name: str) -> NamedDefinition | None:
        """Return a source as it was asked for, of the file or the store."""
        ...

    def add(self, pipeline: str, raw: Mapping[str, Any]) -> str:
        """Add a source; return its name."""
        ...

    def edit(self, name: str, changes: Mapping[str, Any]) -> SourceDefinition:
        """Change some fields of a source; None: as by default."""
        ...

    def remove(self, name: str, *, items: Literal["keep", "forget"]) -> int:
        """Remove a source; return how many items it leaves, or how many are forgotten with it."""
        ...


class Previews(Protocol):
    """Looks at sources that nobody watches yet."""

    async def look(self, pipeline: str, raw: Mapping[str, Any]) -> Trial:
        """Show what would be found, and what would become of the newest; raise BadInput for a wrong definition."""
        ...
