"""The search index: follows changes into tantivy, and answers queries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import tantivy

from tidings.follow.search.cursors import Pins
from tidings.follow.search.deadline import QUERY_SECONDS_MAX, Deadline
from tidings.follow.search.entry import SearchEntry
from tidings.follow.search.folder import IndexFolder, is_damage
from tidings.follow.search.question import IndexState, SearchQuestion, answer
from tidings.follow.search.schema import POSITION, item_mark, mark, value_mark, written
from tidings.follow.search.similar import similar_hits
from tidings.follow.search.stored import entry_of, put_position, stored_position
from tidings.follow.search.suggestions import suggestions
from tidings.model.contracts import Found, Hit, SearchOrder
from tidings.model.errors import BadInput, Transient
from tidings.model.query_tree import Part

T = TypeVar("T")
# The engine writes a segment whenever this is full. With less, a build from nothing makes many small ones that have to
# be merged.
HEAP_BYTES = 100_000_000
PENDING_MAX = 20_000
"""How many entries may wait for a commit."""
BUILT_MAX = 3_000_000
RELOAD_SECONDS = 0.1


class SearchIndex:
    """An index in a folder, or in memory. One process at a time writes it; the others read what it has committed.

    The position of each pipeline is a document of its own in the same commit as the entries: both move together. What
    cannot be read is built again from nothing, and looks empty until then.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        monotonic: Callable[[], float] = time.monotonic,
        pending_max: int = PENDING_MAX,
        query_seconds: float = QUERY_SECONDS_MAX,
    ) -> None:
        self._query_seconds = query_seconds
        self._pending_max = pending_max
        self._folder = IndexFolder(folder)
        self._clock = clock
        self._monotonic = monotonic
        self._pins = Pins(monotonic)
        # Followed by one thread and searched by others. Reentrant, because finding damage begins from nothing on the
        # spot.
        self._lock = threading.RLock()
        self._writer: tantivy.IndexWriter | None = None
        self._pending = 0
        self._positions: dict[str, str] = {}
        """Those that are written and not committed yet."""
        self._has_lost = False
        self._asked: set[str] = set()
        """Pipelines whose position was asked since something was lost: they know where to go on."""
        self._built: dict[str, set[int] | None] = {}
        """The items of pipelines that were built from nothing here; None where others are present too."""
        self._reloaded_at = monotonic()
        self._index = self._opened(may_write=self._folder.lock())

    @property
    def is_writer(self) -> bool:
        """Tell whether this process may write. Where it may not, try: the process that did may have ended."""
        with self._lock:
            if not self._folder.is_locked_here and self._folder.lock():
                self._reopen()
            return self._folder.is_locked_here

    # Following.

    def position(self, pipeline: str) -> str | None:
        """Return how far a pipeline was followed; None: from nothing."""
        with self._lock:
            if pipeline in self._positions:
                return self._positions[pipeline]
            found = self._safely(lambda: stored_position(self._state(), pipeline), None)
            self._asked.add(pipeline)
            return found

    def apply(
        self, pipeline: str, put: Sequence[SearchEntry], withdrawn: Sequence[int], position: str, *, flush: bool = True
    ) -> None:
        """Take in entries, and the position behind them, in one commit: both or neither.

        Without `flush` the commit may wait for those of the next calls; meanwhile nothing of it is found.
        """
        entries = {entry.item: entry for entry in put}
        with self._writing(pipeline) as writer:
            # The engine knows no update: the old document is deleted by its mark, and the new one added in the same
            # commit.
            for item in (*withdrawn, *self._present(pipeline, entries)):
                writer.delete_documents_by_term("marks", item_mark(pipeline, item))
            for entry in entries.values():
                writer.add_document(written(entry))
            put_position(writer, pipeline, position)
            self._positions[pipeline] = position
            self._pending += len(entries) + len(withdrawn) + 1
            if flush or self._pending >= self._pending_max:
                self._commit(writer)

    def flush(self) -> None:
        """Commit what waits."""
        with self._lock:
            if self._pending and self._writer is not None:
                self._commit(self._writer)

    def forget(self, pipeline: str) -> None:
        """Remove a pipeline's entries and its position."""
        self.position(pipeline)
        with self._writing(pipeline) as writer:
            writer.delete_documents_by_term("marks", value_mark("pipeline", pipeline))
            writer.delete_documents_by_term("marks", mark(POSITION, pipeline))
            self._built.pop(pipeline, None)
            self._commit(writer)

    def close(self) -> None:
        """Commit what waits and let another process write."""
        with self._lock:
            self.flush()
            if self._writer is not None:
                # Merges go on in threads after a commit. Files that are half merged would be left behind.
                self._writer.wait_merging_threads()
            self._writer = None
            self._pins.clear()
            self._folder.unlock()

    # Reading.

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
        """Return a page of hits; BadInput where the query asks too much or the cursor is none of it."""
        question = SearchQuestion(root, pipeline, limit, order, with_facets=with_facets, explain=explain)
        return self._safely(lambda: answer(question, cursor, self._state(), self._pins, self._clock()), Found([], 0))

    def suggest(self, text: str, *, pipeline: str | None = None, limit: int = 10) -> list[str]:
        """Return how a text that is being typed may go on: with known words, and as titles."""
        return self._safely(lambda: suggestions(self._state(), text, pipeline, limit), [])

    def similar(self, pipeline: str, kind: str, key: str, *, limit: int = 10) -> list[Hit]:
        """Return what has the most in common with an item."""
        return self._safely(lambda: similar_hits(self._state(), pipeline, kind, key, limit), [])

    def _state(self) -> IndexState:
        with self._lock:
            # Looking for new segments reads a file. A process that writes itself reloads when it commits.
            if self._monotonic() - self._reloaded_at >= RELOAD_SECONDS:
                self._reloaded_at = self._monotonic()
                if not self._folder.is_locked_here:
                    self._reload_or_reopen()
            deadline = Deadline(self._monotonic, self._query_seconds)
            return IndexState(self._index, self._folder.schema, self._index.searcher(), deadline)

    def _reload_or_reopen(self) -> None:
        """See what the writing process committed. It may have begun from nothing, or only now have begun at all."""
        try:
            self._index.reload()
        except BaseException as error:
            if not is_damage(error):
                raise
            self._index = self._opened(may_write=False)
        # An index that was created again has a new folder, and an open one goes on seeing the old, now empty one.
        if self._index.searcher().num_segments == 0:
            self._index = self._opened(may_write=False)

    def _opened(self, *, may_write: bool) -> tantivy.Index:
        index = self._folder.open(check=may_write)
        if index is None and may_write:
            index = self._folder.create()
        return index if index is not None else tantivy.Index(self._folder.schema)

    def _safely(self, read: Callable[[], T], otherwise: T) -> T:
        """Read, or begin from nothing where the index turns out to be damaged."""
        try:
            return read()
        except BaseException as error:
            if not is_damage(error):
                raise
            if not self._is_sound():
                self._begin_from_nothing()
                return otherwise
        # Sound on disk: another process has built it again, and ours has still the old files open. Or the query is odd.
        self._reopen()
        try:
            return read()
        except BaseException as error:
            if not is_damage(error):
                raise
            raise BadInput("the search cannot answer this query") from error

    def _is_sound(self) -> bool:
        """Tell whether the index can be read: then an error was the query's."""
        return self._folder.is_in_memory or self._folder.open(check=True) is not None

    def _reopen(self) -> None:
        with self._lock:
            self._pins.clear()
            if not self._folder.is_in_memory:
                self._lose_pending()
                self._writer = None
                self._index = self._opened(may_write=self._folder.is_locked_here)

    def _begin_from_nothing(self) -> None:
        with self._lock:
            self._lose_pending()
            self._writer = None
            self._pins.clear()
            self._index = self._folder.create() if self._folder.is_locked_here else self._opened(may_write=False)

    def _lose_pending(self) -> None:
        """Let go of what is not committed. Who followed must ask where to go on."""
        self._pending, self._has_lost = 0, True
        self._positions.clear()
        self._asked.clear()
        self._built.clear()
        if self._writer is not None:
            # A writer that is only dropped may live on in a traceback, and with it the engine's own lock.
            try:
                self._writer.rollback()
            except BaseException as error:
                self._writer = None
                if not is_damage(error):
                    raise

    @contextmanager
    def _writing(self, pipeline: str) -> Iterator[tantivy.IndexWriter]:
        with self._lock:
            if not self.is_writer:
                raise Transient("another process writes this search index")
            if self._has_lost and pipeline not in self._asked:
                raise Transient("the search index lost what it had not committed: ask for the position first")
            try:
                if self._writer is None:
                    self._writer = self._index.writer(HEAP_BYTES, 1)
                yield self._writer
            except BaseException as error:
                if is_damage(error) and not self._is_sound():
                    self._begin_from_nothing()
                else:
                    self._lose_pending()
                raise

    def may_hold(self, pipeline: str, items: Collection[int]) -> Collection[int]:
        """Return those of some items that may be in the index; while it is built from nothing, those that are."""
        with self._lock:
            built = self._built.get(pipeline)
            return items if built is None else built.intersection(items)

    def threads(self, pipeline: str, items: Collection[int]) -> dict[int, Sequence[str]]:
        """Return the threads that items are found in, by item; those not in the index are absent."""
        state = self._state() if items else None
        if state is None:
            return {}
        entries = (entry_of(state, pipeline, item) for item in dict.fromkeys(items))
        return {entry.item: entry.thread for entry in entries if entry is not None}

    def _present(self, pipeline: str, items: Collection[int]) -> Collection[int]:
        """Return those of some items that the index may have, and note that it has them all.

        To delete what is not there costs a tenth of the time, and a build from nothing would do it for everything.
        """
        built = self._built.get(pipeline)
        if built is None and pipeline not in self._built:
            is_empty = self.position(pipeline) is None
            built = self._built[pipeline] = set() if is_empty else None
        if built is None:
            return items
        present = built.intersection(items)
        built.update(items)
        if len(built) > BUILT_MAX:
            self._built[pipeline] = None
        return present

    def _commit(self, writer: tantivy.IndexWriter) -> None:
        writer.commit()
        self._pending = 0
        self._positions.clear()
        self._index.reload()
