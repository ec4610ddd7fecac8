"""A Hacker News item: as the API gives it, and what is remembered of it while it is worked on."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

PIPELINE = "hacker_news"
KIND = "item"
COLLECTION = "items"
REPLY = "reply"
OPTION = "option"

TYPES = ("story", "comment", "job", "poll", "pollopt")
ROOTS = frozenset({"story", "job", "poll"})
"""What stands at the top of a thread and has no parent itself."""
POLL = frozenset({"poll"})

SourceType = Literal["FIREBASE", "POST", "BULK", "UNKNOWN"]
Arrival = Literal["new", "updated", "duplicate"]

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Given(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What a source says of an item, with the field names of the Firebase API; everything but the id may be missing."""

    id: Whole
    type: str | None = None
    by: str | None = None
    time: Whole | None = None
    """Unix seconds."""
    title: str | None = None
    url: str | None = None
    text: str | None = None
    score: Whole | None = None
    descendants: Whole | None = None
    kids: tuple[Whole, ...] | None = None
    parent: Whole | None = None
    poll: Whole | None = None
    parts: tuple[Whole, ...] | None = None
    dead: bool | None = None
    deleted: bool | None = None


class ItemBody(Given, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """The item as we work on it: what was given, and what we noted on the way. Times are UTC milliseconds."""

    source_type: SourceType | None = None
    type_inferred: bool = False
    """The source named no type; it follows from the other fields."""
    ingested_at: int | None = None
    last_updated: int | None = None
    arrival: Arrival | None = None
    misplaced: str | None = None
    """Why this item, which readers saw, can stand nowhere: it is withdrawn, and fails."""
    placed_below: int | None = None
    """The parent or poll that names this item as its own, where the item names another."""
    indexed_at: int | None = None
    retry_count: int = 0
    last_failure_at: int | None = None
    error: str | None = None
    stack: str | None = None
    retry_attempt_at: int | None = None

    @property
    def shown_parent(self) -> int | None:
        """The parent readers are told."""
        return self.placed_below or self.parent if self.type == "comment" else self.parent

    @property
    def shown_poll(self) -> int | None:
        """The poll readers are told."""
        return self.placed_below or self.poll if self.type == "pollopt" else self.poll
