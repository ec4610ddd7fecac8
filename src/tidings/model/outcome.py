"""What a processor answers: it went on, it waits, or it ended on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from tidings.model.answers import Provenance
from tidings.model.item import Finding, Link
from tidings.model.publication import Presentation


class Advance(msgspec.Struct, frozen=True):
    """The move happened.

    `body` replaces the item's working body (None keeps it). `links`, where given, replaces every link this item stated
    before. `children` are born, or changed, in the settling transaction. `due_at` wakes an item in a state that has
    only scheduled ways out. `presentation`, where given, replaces what readers see while the accepted body stays; None
    withdraws it. Presenters must make the same of the accepted body, so that shelf and index can be rebuilt. `way`
    names a chosen transition out of the same state: what the processor found out leads there instead.
    """

    body: Any = None
    links: tuple[Link, ...] | None = None
    children: tuple[Finding, ...] = ()
    due_at: int | None = None
    note: str | None = None
    """One line for the journal."""
    provenance: Provenance | None = None
    presentation: Presentation | msgspec.UnsetType | None = msgspec.UNSET
    way: str | None = None


@dataclass(frozen=True, slots=True)
class Postpone:
    """Not now: due again at a time (UTC ms), and the attempt is given back."""

    until: int
    reason: str


@dataclass(frozen=True, slots=True)
class Reject:
    """A healthy ending: this item is not for us."""

    reason: str


Outcome = Advance | Postpone | Reject


@dataclass(frozen=True, slots=True)
class No:
    """A criterion's refusal, with the offending value; falsy."""

    reason: str
    cause: str | None = None
    """The same without the value: what dead letters are grouped by. None: the reason itself."""

    def __bool__(self) -> bool:
        return False


Verdict = bool | No
