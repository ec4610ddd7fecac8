"""The stream of changes: what is put on the shelf and withdrawn from it, in the order in which it was committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tidings.model.errors import BadInput


class Change(NamedTuple):
    """A shelf entry as it stands now; without a value it was withdrawn."""

    version: int
    """Grows by commit order within a pipeline."""
    pipeline: str
    key: str
    """Its key on the shelf, such as `article:17`."""
    collection: str
    """The collection of a card; empty for other entries, such as the id index (`index:articles`)."""
    sort: int
    value: bytes | None
    revision: int
    item: int
    """The item a card shows; negative for other entries."""
    written_at: int


class AcceptedCopy(NamedTuple):
    """The accepted body of an item."""

    id: int
    kind: str
    key: str
    revision: int
    body: bytes


class StoredCopy(NamedTuple):
    """The accepted body of an item, and when the item was found."""

    id: int
    kind: str
    key: str
    found_at: int
    body: bytes


class ChangePage(NamedTuple):
    """Some of the stream, and where it goes on."""

    changes: Sequence[Change]
    stream: str
    """Which stream it is: a pipeline's, and a restored database begins another one."""
    last: int
    """The version up to which all is told."""
    began: int
    """The newest version when the reader started from nothing: of what left before, it never had a card."""
    left: int
    """How many versions follow."""
    is_full: bool
    """There may be more changes at once."""

    @property
    def position(self) -> str:
        """The cursor behind these changes: opaque to all but the store."""
        return self._cursor(self.last)

    def cursor_of(self, change: Change) -> str:
        """Return the cursor behind one of them."""
        return self._cursor(change.version)

    def _cursor(self, version: int) -> str:
        beginning = f".{self.began}" if version < self.began else ""
        return f"{self.stream}.{version}{beginning}"


class CursorGone(BadInput):
    """A cursor of another database or pipeline, or one so old that withdrawals behind it are forgotten."""


class AcceptedChild(NamedTuple):
    """An accepted item and what it stands below."""

    id: int
    ref: str
    parent: str


class Changes(Protocol):
    """The stream of changes."""

    def changes(self, pipeline: str, after: str | None, limit: int) -> ChangePage:
        """Return the changes behind a cursor, or from the beginning; raise CursorGone if some cannot be told."""
        ...

    def versions(self) -> Mapping[str, int]:
        """Return the newest version of every pipeline."""
        ...


class Copies(Protocol):
    """What a follower may ask beside the stream."""

    def accepted(self, items: Sequence[int]) -> Mapping[int, AcceptedCopy]:
        """Return the accepted bodies of items."""
        ...

    def children(self, pipeline: str, relation: str, refs: Sequence[str]) -> Sequence[AcceptedChild]:
        """Return the accepted items right below items."""
        ...

    def reply_counts(self, pipeline: str, relation: str, refs: Sequence[str]) -> Mapping[str, int]:
        """Return how many stand right below items, as in threads; those without any are absent."""
        ...

    def unnamed_parents(self, pipeline: str, relation: str, refs: Sequence[str]) -> Sequence[int]:
        """Return the accepted items right above some that do not name these themselves."""
        ...

    def ancestors(self, pipeline: str, relation: str, refs: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return everything above items in their threads, by ref."""
        ...


class Unwritten(NamedTuple):
    """What a follower has taken in and cannot write where it belongs."""

    changes: int
    since_ms: int
    error: str


class Follower(Protocol):
    """Derives something from the stream. It keeps its position where it keeps its data, so that both move together."""

    name: str

    async def is_our_turn(self) -> bool:
        """Tell whether this process is the one that follows; another may keep the same data up to date."""
        ...

    async def position(self, pipeline: str) -> str | None:
        """Return the cursor it has followed to, or None if it starts from nothing."""
        ...

    async def follow(self, pipeline: str, changes: Sequence[Change], position: str) -> None:
        """Take in changes and the position behind them: both or neither. To take them in twice changes nothing."""
        ...

    def unwritten(self) -> Unwritten | None:
        """Tell what cannot be written now: it is taken in, and no reader sees it. None where all is well."""
        ...

    async def start_over(self, pipeline: str) -> None:
        """Forget what was derived of a pipeline, and its position: the stream can no longer tell what went missing."""
        ...
