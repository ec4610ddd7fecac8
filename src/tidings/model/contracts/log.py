"""The append-only log of findings, as discovery and as workers see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tidings.model.gathering import Gathered
from tidings.model.item import Appended, Finding
from tidings.model.pipeline import Ranking
from tidings.model.settlement import Merged, Reservation


class Intake(Protocol):
    """The append-only log of findings."""

    def append(
        self,
        pipeline: str,
        findings: Sequence[Finding],
        *,
        source: str | None = None,
        cursor: Any = None,
        mark: Any = None,
        completes: bool = False,
        rankings: Sequence[Ranking] = (),
        gathered: Sequence[Gathered] = (),
    ) -> Appended:
        """Write what is new or changed, with what else a source's page or run brings, in one transaction."""
        ...

    def merge(self, pipeline: str, limit: int = 500) -> Merged:
        """Turn the next findings, in log order, into items; move the checkpoint with them."""
        ...

    def trim(self, pipeline: str) -> int:
        """Drop findings behind the checkpoint that are older than the log is kept."""
        ...

    def cursor(self, source: str) -> tuple[Any, Any, bool]:
        """Return a source's cursor, its mark and whether a run has ever completed."""
        ...

    def unmerged(self, pipeline: str) -> int:
        """Count what waits behind the checkpoint."""
        ...

    def total(self, pipeline: str) -> int:
        """Count what the log holds."""
        ...


class Log(Intake, Protocol):
    """The log as a worker sees it: what it holds becomes items."""

    @property
    def reservations_max(self) -> int:
        """How many stretches of a pipeline's log one process should reserve at once."""
        ...

    def claim_findings(
        self, pipeline: str, limit: int = 500, *, lease_seconds: float = 15, may_reserve: bool = True
    ) -> tuple[Merged, Reservation | None]:
        """Take the next findings: reserve them where their items begin with pure steps, else merge them at once."""
        ...

    def give_back(self, reservation: Reservation) -> Merged:
        """End a reservation whose run was cut off, or whose end cannot be written: each item gets its own attempt."""
        ...
