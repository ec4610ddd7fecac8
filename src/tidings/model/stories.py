"""Stories: groups of items of all pipelines that tell the same event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

MEMBERS_SHOWN_MAX = 500


class StoryRow(NamedTuple):
    """What is told of a story as a whole."""

    id: int
    first_ms: int
    last_ms: int
    size: int
    sources: int
    version: int
    """Grows with every change of any story."""
    changed_at: int


class StoryMember(NamedTuple):
    """An item that tells a story, by its card."""

    story: int
    item: int
    pipeline: str
    key: str
    """Of its card on the shelf."""
    source: str
    time_ms: int


class StoryPlace(NamedTuple):
    """In which story a card is told, and how many tell it."""

    pipeline: str
    key: str
    story: int
    size: int
    sources: int


class StoryState(NamedTuple):
    """How far the grouping is."""

    step: int
    """Grows with every change of the groups."""
    place: int
    """The last one drawn."""
    version: int
    settled: int
    """Up to this place nothing is grouped again."""
    waiting: int
    decision: int | None
    """The place of the first decision that is to be applied again."""
    is_again: int
    """Items that were grouped before wait to be grouped again."""


class Telling(NamedTuple):
    """An item that tells something, to be grouped."""

    item: int
    pipeline: str
    key: str
    source: str
    time_ms: int
    facts: bytes
    digest: bytes


class WaitingTelling(NamedTuple):
    """An item whose turn has not come; one that is grouped again has its place."""

    item: int
    time_ms: int
    facts: bytes
    digest: bytes
    place: int | None
    seen_ms: int | None


class GroupedTelling(NamedTuple):
    """An item as it was grouped."""

    item: int
    place: int
    story: int
    time_ms: int
    seen_ms: int
    facts: bytes
    digest: bytes
    terms: bytes


class PlacedTelling(NamedTuple):
    """A row of `place_tellings`."""

    item: int
    place: int
    seen_ms: int
    story: int
    terms: bytes


class StorySpan(NamedTuple):
    """The time of all that was ever grouped into a story."""

    story: int
    first_ms: int
    last_ms: int


class StoryGroups(Protocol):
    """Where the follower keeps what it groups."""

    def state(self) -> StoryState:
        """Return how far the grouping is."""
        ...

    def take_turn(self, owner: str, turn_ms: int) -> bool:
        """Take or keep the right to group; False while another process has it."""
        ...

    def leave_turn(self, owner: str) -> None:
        """Let another process go on at once."""
        ...

    def position(self, pipeline: str) -> str | None:
        """Return how far a pipeline's stream was followed."""
        ...

    def take_in(self, pipeline: str, tellings: Sequence[Telling], gone: Sequence[int], position: str) -> None:
        """Note what is to be grouped and what is told no more, with the position behind both."""
        ...

    def start_over(self, pipeline: str) -> None:
        """Follow a pipeline from the beginning: what does not come along again is gone. Who told what is kept."""
        ...

    def waiting(self, limit: int, *, before: int | None = None) -> Sequence[WaitingTelling]:
        """Return what is to be grouped next; with `before`, only what had its place before that one."""
        ...

    def grouped(self, window_ms: int, limit: int) -> tuple[Sequence[GroupedTelling], Mapping[int, StorySpan]]:
        """Return what is in the window, in order, and the spans of its stories."""
        ...

    def place(self, step: int, place: int, placed: Sequence[PlacedTelling]) -> bool:
        """Write where items belong; False if the groups have changed since `step`: nothing is written then."""
        ...

    def apply_decisions(self, place: int) -> None:
        """Apply once more what a person decided at a place."""
        ...

    def tidy(self, window_ms: int) -> int:
        """Forget what is gone for long and what nothing is compared with any more."""
        ...


class StoryViews(Protocol):
    """What readers may ask about stories, and what operators may decide."""

    def story(self, story: int) -> StoryRow | None:
        """Return a story, while anything tells it."""
        ...

    def newest(self, limit: int, *, sources: int = 0, after: tuple[int, int] | None = None) -> Sequence[StoryRow]:
        """Return the stories that more than one item tells, newest news first, behind `after` (last_ms, id)."""
        ...

    def changed(self, after: int, limit: int) -> Sequence[StoryRow]:
        """Return what changed behind a version, all of a version together; a story of size 0 is told no more."""
        ...

    def version(self) -> int:
        """Return the newest version."""
        ...

    def members(self, stories: Sequence[int]) -> Mapping[int, Sequence[StoryMember]]:
        """Return who tells these stories, first told first."""
        ...

    def places(self, cards: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], StoryPlace]:
        """Return the stories of those cards (pipeline, key) that are not alone in theirs."""
        ...

    def split(self, items: Sequence[int], *, actor: str) -> int:
        """Put items of one story into another of their own; return its number. BadInput where they are not of one."""
        ...

    def join(self, story: int, others: Sequence[int], *, actor: str) -> int:
        """Put all that tells other stories into one; return how many items moved."""
        ...
