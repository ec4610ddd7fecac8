"""What an item's journal tells of the way it took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidings.model.workflow import Workflow

BEGINNINGS = frozenset({"born", "adopted", "changed"})
"""The kinds of journal rows with which a revision begins."""


class Move(Protocol):
    """A step inside a row of the journal."""

    @property
    def to_state(self) -> str:
        """Where it led."""
        ...


class Told(Protocol):
    """A row of the journal, as far as it is needed here."""

    @property
    def kind(self) -> str:
        """What sort of row it is."""
        ...

    @property
    def to_state(self) -> str:
        """Where the item stood after it."""
        ...

    @property
    def steps(self) -> Sequence[Move]:
        """The moves inside it."""
        ...


def came_past(workflow: Workflow, state: str, now: str, life: Sequence[Told]) -> bool:
    """Tell whether an item that stands in `now` has been in a state with its current revision.

    The declaration knows it wherever every way leads through the state; old rows of the journal are trimmed.
    """
    return workflow.leads_through(state, now) or state in visited(life)


def visited(life: Sequence[Told]) -> set[str]:
    """Return the states that an item has been in since its current revision began."""
    states: set[str] = set()
    for row in life:
        if row.kind in BEGINNINGS:
            states.clear()
        states |= {row.to_state, *(step.to_state for step in row.steps)}
    return states
