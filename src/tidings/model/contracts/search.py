"""The full-text search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tidings.model.query_tree import Part


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result."""

    pipeline: str
    kind: str
    key: str
    title: str
    snippet: str
    """Plain text with the found words between \\x02 and \\x03; not escaped: that is done where it is shown."""
    rank: float
    author: str | None
    type: str | None
    score: int | None
    time_ms: int
    url: str | None
    attributes: Mapping[str, Any]
    shelf_key: str = ""
    """The key of its card."""
    item: int = 0
    passages: Mapping[str, str] = field(default_factory=dict)
    """The best passage of `title` and of `text`, where a word was found in them, marked as the snippet is."""
    explanation: str | None = None
    """How the rank came about, where that was asked."""


SearchOrder = Literal["relevance", "newest", "score"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: one page of it."""

    hits: list[Hit]
    total: int
    next_cursor: str | None = None
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How many of all hits have each `type`, `pipeline`, `source` and `day`, where that was asked."""
    instead: str | None = None
    """The words that were searched for instead, when those of the query found little and one of them is unknown."""


class Search(Protocol):
    """The full-text search, by a parsed query."""

    def search(
        self,
        root: Part,
        *,
        pipeline: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        order: SearchOrder = "relevance",
        with_facets: bool = False,
        explain: bool = False,
    ) -> Found:
        """Return a page of hits, the next one by its cursor; BadInput where the query asks too much."""
        ...

    def suggest(self, text: str, *, pipeline: str | None = None, limit: int = 10) -> list[str]:
        """Return how a text that is being typed may go on."""
        ...

    def similar(self, pipeline: str, kind: str, key: str, *, limit: int = 10) -> list[Hit]:
        """Return what has the most in common with an item."""
        ...
