"""One question to the index: from the parsed query to a page of hits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import tantivy
from msgspec.structs import replace as replace_struct

from tidings.follow.search.cursors import Cursor, Pins, checksum, read_cursor, write_cursor
from tidings.follow.search.deadline import Deadline
from tidings.follow.search.facets import facets
from tidings.follow.search.hits import hit_of
from tidings.follow.search.pages import DEPTH_MAX, Best, Ranked, Sorting, best_matches, ranked_page
from tidings.follow.search.queries import Translator, has_words
from tidings.follow.search.typos import corrected, corrections, wording
from tidings.model.contracts import Found, Hit, SearchOrder
from tidings.model.errors import BadInput
from tidings.model.query_tree import Part

LIMIT_MAX = 1_000
FEW_HITS = 3
"""With fewer, a second attempt is made at words that no document has."""


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """What is asked."""

    root: Part
    pipeline: str | None
    limit: int
    order: SearchOrder
    with_facets: bool = False
    explain: bool = False

    @property
    def is_ranked(self) -> bool:
        """Tell whether hits are sorted by rank; without words there is none, and the newest come first."""
        return self.order == "relevance" and has_words(self.root)

    @property
    def field(self) -> str:
        """Name the field that hits are sorted by, where that is not the rank."""
        return "points" if self.order == "score" else "time"


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index as it stands at one moment."""

    index: tantivy.Index
    schema: tantivy.Schema
    searcher: tantivy.Searcher
    deadline: Deadline


def answer(question: SearchQuestion, cursor_text: str | None, state: IndexState, pins: Pins, now_ms: int) -> Found:
    """Return the page behind a cursor, or the first."""
    if not 1 <= question.limit <= LIMIT_MAX:
        raise BadInput(f"a page has 1 to {LIMIT_MAX} hits")
    asked = checksum(question.root, question.pipeline, question.order)
    if cursor_text is not None:
        return _later_page(question, read_cursor(cursor_text, asked), state, pins)
    first = _Attempt(question, question.root, state, Cursor(asked, "", now_ms))
    attempt = _second_attempt(first) or first
    return attempt.found(pins)


def _later_page(question: SearchQuestion, cursor: Cursor, state: IndexState, pins: Pins) -> Found:
    pin = pins.take(cursor.pin)
    root = corrected(question.root, cursor.instead) if cursor.instead else question.root
    if pin is None:
        return _Attempt(question, root, state, cursor).found(pins)
    return _Attempt(question, root, replace(state, searcher=pin.searcher), cursor, pin.best).found(pins)


def _second_attempt(first: _Attempt) -> _Attempt | None:
    """Try the nearest known words, where little was found; None where that finds no more."""
    if first.total >= FEW_HITS:
        return None
    words = corrections(first.root, first.translator, first.state.deadline)
    if not words:
        return None
    root = corrected(first.root, words)
    second = _Attempt(first.question, root, first.state, replace_struct(first.cursor, instead=words))
    return second if second.total > first.total else None


class _Attempt:
    """A page of a query's hits, looked up in one state of the index."""

    def __init__(
        self, question: SearchQuestion, root: Part, state: IndexState, cursor: Cursor, best: Best | None = None
    ) -> None:
        self.question = question
        self.root = root
        self.state = state
        self.cursor = cursor
        self.translator = Translator(state.index, state.schema, state.searcher)
        self.query = self.translator.query(root, question.pipeline)
        state.deadline.check()
        self.best, self.hits, self.total = self._ranked(best) if question.is_ranked else self._sorted()

    def _ranked(self, best: Best | None) -> tuple[Best, list[Ranked], int]:
        searcher, cursor = self.state.searcher, self.cursor
        total = cursor.total
        if best is None:
            best, total = best_matches(searcher, self.query, cursor.now_ms)
        return best, ranked_page(searcher, self.query, best, cursor.shown, self.question.limit), total

    def _sorted(self) -> tuple[Best, list[Ranked], int]:
        cursor = self.cursor
        state = self.state
        sorting = Sorting(state.searcher, state.schema, self.query, self.question.field, state.deadline)
        behind = (cursor.value, cursor.item) if cursor.shown else None
        return [], sorting.page(behind, self.question.limit), cursor.total if cursor.shown else sorting.count()

    def found(self, pins: Pins) -> Found:
        """Return the page as readers see it."""
        self.state.deadline.check()
        return Found(
            hits=[self._hit(ranked) for ranked in self.hits],
            total=self.total,
            next_cursor=self._next_cursor(pins),
            facets=facets(self.state.searcher, self.query) if self.question.with_facets else {},
            instead=wording(self.root) if self.cursor.instead else None,
        )

    def _hit(self, ranked: Ranked) -> Hit:
        self.state.deadline.check()
        return hit_of(self.state.searcher, ranked, self.root, self.cursor.now_ms, explain=self.question.explain)

    def _next_cursor(self, pins: Pins) -> str | None:
        cursor, shown = self.cursor, self.cursor.shown + len(self.hits)
        is_deep = self.question.is_ranked and shown >= DEPTH_MAX
        if not self.hits or shown >= self.total or is_deep:
            return None
        pin = cursor.pin if pins.take(cursor.pin) else pins.hold(self.state.searcher, self.best)
        last = self.hits[-1]
        return write_cursor(
            replace_struct(cursor, pin=pin, shown=shown, total=self.total, value=last.value, item=last.item)
        )
