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


def _told(help_text: str) -> msgspec.Meta:
    """Describe a field in the API's document."""
    return msgspec.Meta(description=help_text)


# The least id and the known types are told in the document, and judged by `upload` and the workflow.
Id = Annotated[int, msgspec.Meta(le=2**63 - 1, description="Unique among all items.", extra_json_schema={"minimum": 1})]
Type = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(TYPES)})]


class Given(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What a source says of an item, with the field names of the Firebase API; everything but the id may be missing."""

    id: Id
    type: Annotated[Type | None, _told("Without one, what has a parent and no title is a comment.")] = None
    by: Annotated[str | None, _told("Its author's name.")] = None
    time: Annotated[Whole | None, _told("When it was posted, in Unix seconds.")] = None
    title: Annotated[str | None, _told("Of a story, job or poll; entities such as `&amp;` are read.")] = None
    url: Annotated[str | None, _told("What a story links to, by http or https.")] = None
    text: Annotated[str | None, _told("HTML, which is cleaned.")] = None
    score: Annotated[Whole | None, _told("Points, or the votes of a poll's option.")] = None
    descendants: Annotated[Whole | None, _told("How many comments there are in all.")] = None
    kids: Annotated[tuple[Whole, ...] | None, _told("Its replies, in ranked order.")] = None
    parent: Annotated[Whole | None, _told("Of a comment: what it replies to.")] = None
    poll: Annotated[Whole | None, _told("Of a poll's option: its poll.")] = None
    parts: Annotated[tuple[Whole, ...] | None, _told("Of a poll: its options, in order.")] = None
    dead: Annotated[bool | None, _told("Withdrawn by moderators or software.")] = None
    deleted: Annotated[bool | None, _told("Withdrawn by its author: its place stays, its words go.")] = None


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
