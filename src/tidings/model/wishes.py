"""Wishes: cards that a reader asked for and that a source is to fetch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

GrantedAs = Literal["found", "unknown", "failed"]
"""How a source answered: it is on its way, there is no such thing, or it could not be read."""
WishState = Literal["waiting", "unknown", "failed", "refused"]
"""What a reader is told: `refused` where too many wishes wait."""


@dataclass(frozen=True, slots=True)
class GrantedWishes:
    """What a source answers to wishes for cards of one collection, by id."""

    collection: str
    answers: Mapping[str, GrantedAs]


@dataclass(frozen=True, slots=True)
class Outdated:
    """Ids of cards of one collection that changed at the source; those that are shown here are to be fetched again."""

    collection: str
    ids: tuple[str, ...]


class Wishes(Protocol):
    """The wishes that wait, and how the last ones were answered."""

    def wish(self, pipeline: str, collection: str, card_id: str) -> WishState:
        """Ask for a card, unless that was answered lately; return how it stands."""
        ...

    def waiting(self, pipeline: str, collection: str, limit: int) -> list[str]:
        """Return the ids that wait, the oldest wish first."""
        ...

    def answer(self, pipeline: str, granted: GrantedWishes) -> None:
        """Close wishes."""
        ...

    def renew(self, pipeline: str, singular: str, outdated: Outdated) -> None:
        """Wish again for those cards that are shown."""
        ...
