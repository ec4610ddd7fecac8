"""What the index keeps beside its words: each entry whole, and how far each pipeline was followed."""

from __future__ import annotations

import tantivy

from tidings.follow.search.entry import SearchEntry, decode
from tidings.follow.search.question import IndexState
from tidings.follow.search.schema import POSITION, item_mark, mark


def put_position(writer: tantivy.IndexWriter, pipeline: str, position: str) -> None:
    """Replace the note of how far a pipeline was followed; it is committed with the entries."""
    writer.delete_documents_by_term("marks", mark(POSITION, pipeline))
    note = tantivy.Document()
    note.add_text("marks", f"{mark(POSITION, '')} {mark(POSITION, pipeline)}")
    note.add_bytes("entry", position.encode())
    writer.add_document(note)


def stored_position(state: IndexState, pipeline: str) -> str | None:
    """Return how far a pipeline was followed, as committed."""
    found = _stored(state, mark(POSITION, pipeline))
    return None if found is None else found.decode()


def entry_of(state: IndexState, pipeline: str, item: int) -> SearchEntry | None:
    """Return what the index keeps of an item."""
    found = _stored(state, item_mark(pipeline, item))
    return None if found is None else decode(found)


def _stored(state: IndexState, document_mark: str) -> bytes | None:
    query = tantivy.Query.term_query(state.schema, "marks", document_mark, "basic")
    hits = state.searcher.search(query, 1).hits
    return bytes(state.searcher.doc(hits[0][1])["entry"][0]) if hits else None
