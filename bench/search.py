"""Search over many items: eight kinds of queries, how fast the index is built, and what it takes on the disk.

The queries run one after the other on an index that was closed and opened again, each with its first page of hits,
snippets and total. The floor of the index rate is tantivy with one field of text and nothing else.
"""

from __future__ import annotations

import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import tantivy

from bench.hn_items import FIRST_TIME, Item, items
from tidings.follow.search.entry import SearchEntry
from tidings.follow.search.index import SearchIndex
from tidings.model.publication import Document
from tidings.model.query_tree import AllOf, AnyOf, Compare, Not, Part, Words

ITEMS, QUICK_ITEMS, FLOOR_ITEMS = 500_000, 20_000, 50_000
BATCH = 1_000
QUERIES, QUICK_QUERIES = 200, 40
PIPELINE = "hacker_news"
SECONDS_PER_ITEM = 7
GOAL_MS, PREFIX_GOAL_MS = 20, 60
_TAG = re.compile(r"<[^>]*>|&[a-z#0-9x]+;")


def run(quick: bool) -> list[dict[str, Any]]:
    """Build an index and ask it."""
    count = QUICK_ITEMS if quick else ITEMS
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        home = Path(folder) / "index"
        rate = _build(home, count)
        size = sum(file.stat().st_size for file in home.rglob("*") if file.is_file())
        rows = [
            _row(f"search: {count:,} items indexed", rate, "items/s", _floor_rate(Path(folder) / "floor")),
            _row(f"search: {count:,} items on the disk", size / 1e6, "MB", None),
        ]
        index = SearchIndex(home)
        for name, make in KINDS.items():
            rows += _ask(index, name, make, count, QUICK_QUERIES if quick else QUERIES)
        index.close()
    return rows


def _build(home: Path, count: int) -> float:
    index = SearchIndex(home)
    entries = (entry_of(item) for item in items(count))
    spent, done = 0.0, 0
    while batch := list(islice(entries, BATCH)):
        started = time.perf_counter()
        done += len(batch)
        index.apply(PIPELINE, batch, [], str(done), flush=done >= count)
        spent += time.perf_counter() - started
    index.close()
    return count / spent


def _floor_rate(home: Path) -> float:
    home.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=True)
    writer = tantivy.Index(builder.build(), path=str(home)).writer(100_000_000, 1)
    texts = [f"{item.title or ''} {item.text or ''}" for item in items(FLOOR_ITEMS)]
    started = time.perf_counter()
    for text in texts:
        document = tantivy.Document()
        document.add_text("text", text)
        writer.add_document(document)
    writer.commit()
    rate = FLOOR_ITEMS / (time.perf_counter() - started)
    writer.wait_merging_threads()
    return rate


def entry_of(item: Item) -> SearchEntry:
    """Return what the index is given of an item."""
    document = Document(
        title=item.title or "",
        text=_TAG.sub(" ", item.text or ""),
        author=item.by,
        type=item.type,
        score=item.score,
        time_ms=item.time * 1000,
        url=item.url,
        attributes={"comments": item.descendants} if item.descendants is not None else {},
    )
    key = str(item.id)
    above = () if item.parent is None else (str(item.parent),)
    return SearchEntry(item.id, PIPELINE, "item", key, f"item:{key}", document, above)


def _ask(index: SearchIndex, name: str, make: Callable[[Vocabulary], Part], count: int, times: int) -> Iterator[Any]:
    vocabulary = Vocabulary(count)
    spent = []
    for _ in range(times):
        root = make(vocabulary)
        started = time.perf_counter()
        index.search(root, limit=20)
        spent.append((time.perf_counter() - started) * 1000)
    quantiles = statistics.quantiles(spent, n=20)
    goal = PREFIX_GOAL_MS if "prefix" in name else GOAL_MS
    yield _row(f"search: {name}, p50", statistics.median(spent), "ms", None)
    yield _row(f"search: {name}, p95 (goal {goal})", quantiles[18], "ms", None)


class Vocabulary:
    """Words, pairs, names and times that occur in the items."""

    def __init__(self, count: int) -> None:
        self._rng = random.Random(11)
        self._texts = [_TAG.sub(" ", f"{item.title or ''} {item.text or ''}").split() for item in items(2_000)]
        self._count = count

    def word(self) -> str:
        """Return a word, frequent ones more often."""
        return self._rng.choice(self._rng.choice(self._texts))

    def pair(self) -> str:
        """Return two words that stand in a row."""
        text = self._rng.choice([each for each in self._texts if len(each) > 2])
        start = self._rng.randrange(len(text) - 1)
        return f"{text[start]} {text[start + 1]}"

    def typo(self) -> str:
        """Return a word with a letter too many."""
        word = next(each for each in iter(self.word, None) if each is not None and len(each) > 5)
        place = self._rng.randrange(1, len(word))
        return f"{word[:place]}{self._rng.choice('xzqj')}{word[place:]}"

    def author(self) -> str:
        """Return a name."""
        return f"user{self._rng.randrange(5_000)}"

    def time_ms(self) -> float:
        """Return a time between the first and the last item."""
        return (FIRST_TIME + self._rng.randrange(self._count) * SECONDS_PER_ITEM) * 1000.0


KINDS: dict[str, Callable[[Vocabulary], Part]] = {
    "a word": lambda v: Words(v.word()),
    "two words": lambda v: AllOf((Words(v.word()), Words(v.word()))),
    "a phrase": lambda v: Words(v.pair()),
    "a word since a day": lambda v: AllOf((Words(v.word()), Compare("time", ">=", v.time_ms()))),
    "one word or another, not a third": lambda v: AllOf(
        (AnyOf((Words(v.word()), Words(v.word()))), Not(Words(v.word())))
    ),
    "a prefix": lambda v: Words(v.word()[:3], is_prefix=True),
    "an author's stories above a score": lambda v: AllOf(
        (Compare("by", "=", v.author()), Compare("type", "=", "story"), Compare("score", ">", 2.0))
    ),
    "a misspelled word": lambda v: Words(v.typo()),
}


def _row(what: str, value: float, unit: str, floor: float | None) -> dict[str, Any]:
    return {"what": what, "value": value, "unit": unit, "floor": floor, "ratio": value / floor if floor else None}
