"""One look at a source: the right to ask it, and what was found by that right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidings.model.errors import Transient
from tidings.model.gathering import Gathered
from tidings.model.item import Appended
from tidings.model.pipeline import Page, Pipeline, PlacedSource, Source
from tidings.model.views import RunEnd, RunView

OnPage = Callable[[Page], None]
"""Told of every page once it is kept."""


class SourceTurn(Protocol):
    """The right to ask a source now."""

    @property
    def failures(self) -> int:
        """How often in a row the source has failed."""
        ...


class Sources(Protocol):
    """Which sources there are; the list may change at any time."""

    def current(self) -> Mapping[str, PlacedSource]:
        """Return every source by its name."""
        ...

    def declare(self) -> Mapping[str, PlacedSource]:
        """Name every source and make it known to the schedule; return them all."""
        ...


class Schedules(Protocol):
    """Who asks which source when."""

    def due(self) -> list[str]:
        """Return the sources that are due, the longest waiting first."""
        ...

    def claim(self, source: str, owner: str, lease_seconds: float, *, force: bool = False) -> Any:
        """Take the turn, or return None."""
        ...

    def beat(self, turn: Any, lease_seconds: float) -> bool:
        """Prolong a turn."""
        ...

    def keeping(self, turn: Any, lease_seconds: float) -> AbstractContextManager[bool]:
        """Prolong a turn in the transaction of what is written by its right; False where it was lost."""
        ...

    def close(self, turn: Any, run: RunView, *, next_in_seconds: float) -> None:
        """End a turn."""
        ...

    def give_back(self, turn: Any, run: RunView) -> None:
        """End a turn that was stopped: neither success nor failure, due again at once."""
        ...

    def claim_between(self, source: str, owner: str, lease_seconds: float) -> Any:
        """Take the turn between two runs, or return None."""
        ...

    def close_between(self, turn: Any, run: RunView) -> None:
        """End a turn between two runs; the schedule stays as it is."""
        ...


class TurnLost(Transient):
    """Another process asks this source now."""


@dataclass(slots=True)
class Look:
    """One look at a source, under way: by whose turn, and what it has found so far."""

    pipeline: Pipeline
    source: Source
    turn: SourceTurn
    started_at: int
    on_page: OnPage
    appended: Appended = field(default_factory=Appended)
    found: int = 0
    rejected: int = 0
    trimmed: int = 0
    pages: int = 0
    credits: int = 0
    notes: list[str] = field(default_factory=list)
    next_check_seconds: float | None = None
    ended: RunEnd = "complete"
    in_log: int | None = None
    """How many findings the log holds at its end."""
    gathered: list[Gathered] = field(default_factory=list)
    """What its findings add to cards, kept at its end: one write a run."""
    is_lost: bool = False
    """Another poller has the turn."""

    def count(self, page: Page, appended: Appended) -> None:
        """Count a page that was kept."""
        self.pages += 1
        self.found += len(page.findings)
        self.appended += appended
        self.rejected += len(page.rejected)
        self.credits += page.credits
        if page.incomplete:
            self.ended = "incomplete"
        self.notes += [told for told in (page.note, page.incomplete) if told]

    def view(self, error: str | None = None) -> RunView:
        """Return the record of the run."""
        return RunView(
            source=self.source.name,
            started_at=self.started_at,
            found=self.found,
            new=self.appended.new,
            changed=self.appended.changed,
            unchanged=self.appended.unchanged,
            rejected=self.rejected,
            trimmed=self.trimmed,
            pages=self.pages,
            credits=self.credits,
            error=error,
            note="; ".join(dict.fromkeys(self.notes))[:500] or None,
            ended=self.ended,
            in_log=self.in_log,
        )

    def lost(self) -> TurnLost:
        """Return the error of a look whose turn another poller has taken."""
        return TurnLost(f"{self.source.name} took so long that another poller has its turn now, or it was removed")
