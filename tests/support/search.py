"""A search index in memory, and entries to put into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidings.follow.search.entry import SearchEntry
from tidings.follow.search.index import SearchIndex
from tidings.model.publication import Document
from tidings.model.query_tree import Part

START_MS = 1_700_000_000_000
PIPELINE = "hacker_news"


def an_entry(
    item: int, title: str = "", text: str = "", *, pipeline: str = PIPELINE, thread: Sequence[str] = (), **fields: Any
) -> SearchEntry:
    """Return an entry whose key is its item's number."""
    document = Document(title, text, **{"time_ms": START_MS + item * 1000, **fields})
    return SearchEntry(item, pipeline, "item", str(item), f"item:{item}", document, thread)


def an_index(*entries: SearchEntry) -> SearchIndex:
    """Return an index in memory that has some entries."""
    index = SearchIndex(clock=lambda: START_MS)
    for pipeline in dict.fromkeys(entry.pipeline for entry in entries):
        index.apply(pipeline, [entry for entry in entries if entry.pipeline == pipeline], [], "1")
    return index


def keys(index: SearchIndex, root: Part, **options: Any) -> list[str]:
    """Return the keys of what is found, best first."""
    return [hit.key for hit in index.search(root, **options).hits]


def all_pages(index: SearchIndex, root: Part, limit: int, **options: Any) -> list[str]:
    """Return the keys on all pages."""
    found = index.search(root, limit=limit, **options)
    shown = [hit.key for hit in found.hits]
    while found.next_cursor is not None:
        found = index.search(root, limit=limit, cursor=found.next_cursor, **options)
        shown += [hit.key for hit in found.hits]
    return shown
