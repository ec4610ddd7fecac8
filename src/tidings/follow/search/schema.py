"""The fields of the index, and how an entry is written into them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import tantivy

from tidings.follow.search.entry import SearchEntry, encode
from tidings.model.publication import Document
from tidings.model.values import OWN_NAMES, number_of, sites_of, text_of, url_words
from tidings.model.words import ENGLISH, formed, stemmer_name, tokens

SCHEMA_VERSION = 1
"""Goes up with every change of the fields, or of what counts as a word: an older index is then built again."""

NO_SCORE = -(2**62)
"""What an entry without a score is sorted by."""
INTEGER_MAX = 2**62
TEXT_CHARS_MAX = 200_000
"""Of a longer text only the beginning is found."""

_BETWEEN = "\x1e"
_GAPS = str.maketrans(dict.fromkeys(" \t\n\f\r", "\x1f") | {_BETWEEN: " "})
ITEM, NAME, THREAD, LANGUAGE, POSITION = "\x01", "\x02", "\x03", "\x04", "\x05"


def build_schema() -> tantivy.Schema:
    """Declare the fields. What is searched stands in them already split and folded, with spaces between the words."""
    builder = tantivy.SchemaBuilder()
    # An unsigned field that is given a Python int kills the writer's thread: integers are signed throughout.
    builder.add_integer_field("item", fast=True)
    builder.add_integer_field("time", indexed=True, fast=True)
    builder.add_integer_field("points", indexed=True, fast=True)
    builder.add_float_field("weight", fast=True)
    for name in ("title", "text", "url"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="position")
    for name in ("title_stems", "text_stems"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    # One field for all exact values. A field for each would cost the engine files and memory, used or not.
    builder.add_text_field("marks", tokenizer_name="whitespace", index_option="basic")
    builder.add_json_field("numbers", fast=True, tokenizer_name="raw", index_option="basic")
    for name in ("type", "pipeline", "source"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_bytes_field("entry", stored=True)
    return builder.build()


def mark(name: str, value: str) -> str:
    """Return the term that stands for a named value."""
    return f"{name}={value}".translate(_GAPS)


def stem_term(stemmer: str, stem: str) -> str:
    """Return the term of a stem: another language's has its name before it, since words of two may share a stem."""
    return stem if stemmer == ENGLISH else f"{stemmer}:{stem}"


def written(entry: SearchEntry) -> tantivy.Document:
    """Write an entry as a tantivy document."""
    source = entry.document
    sites = sites_of(source.url) if source.url else ()
    made = tantivy.Document()
    made.add_integer("item", entry.item)
    made.add_integer("time", source.time_ms)
    # A document without the field could not be sorted with those that have it.
    made.add_integer("points", NO_SCORE if source.score is None else max(-INTEGER_MAX, min(INTEGER_MAX, source.score)))
    made.add_float("weight", score_weight(source.score))
    _add_words(made, "title", source.title, source.language)
    _add_words(made, "text", source.text, source.language)
    if source.url:
        made.add_text("url", " ".join(url_words(source.url)))
    made.add_text("marks", _marks(entry, sites))
    numbers = _numbers(source)
    if numbers:
        made.add_json("numbers", msgspec.json.encode(numbers).decode())
    made.add_text("type", source.type or "")
    made.add_text("pipeline", entry.pipeline)
    made.add_text("source", _source(source, sites))
    made.add_bytes("entry", encode(entry))
    return made


def score_weight(score: int | None) -> float:
    """Let a score move a hit, but never past a much better match."""
    return 1 + 0.15 * math.log1p(score) if score is not None and score > 0 else 1.0


def _source(source: Document, sites: Sequence[str]) -> str:
    """Name where a document is from: its `source`, or the site of its address."""
    stated = source.attributes.get("source")
    return stated if isinstance(stated, str) else sites[0] if sites else ""


def _add_words(made: tantivy.Document, field: str, text: str, language: str | None) -> None:
    words = tokens(text[:TEXT_CHARS_MAX]) if text else None
    if not words:
        return
    made.add_text(field, " ".join(words))
    stems = formed(words, language)
    stemmer = stemmer_name(language)
    if stemmer != ENGLISH:
        stems = " ".join(stem_term(stemmer, each) for each in stems.split())
    made.add_text(f"{field}_stems", stems)


def _marks(entry: SearchEntry, sites: Sequence[str]) -> str:
    pipeline, source = entry.pipeline, entry.document
    marks = [
        f"{ITEM}={pipeline}/{entry.item}",
        f"{NAME}={pipeline}/{entry.kind}/{entry.key}",
        f"{THREAD}={entry.key}",
        value_mark("pipeline", pipeline),
    ]
    marks += [f"{THREAD}={key}" for key in entry.thread]
    marks += [value_mark("site", site) for site in sites]
    marks += [value_mark(name, value) for name, value in _named(source)]
    if stemmer_name(source.language) != ENGLISH:
        marks.append(f"{LANGUAGE}={stemmer_name(source.language)}")
    # All at once: the spaces inside become gaps, what stands between them becomes a space.
    return _BETWEEN.join(marks).translate(_GAPS)


def item_mark(pipeline: str, item: int) -> str:
    """Return the term by which an entry is deleted: item ids are unique within a pipeline's database only."""
    return mark(ITEM, f"{pipeline}/{item}")


@lru_cache(maxsize=20_000, typed=True)
def value_mark(name: str, value: Any) -> str:
    """Return the term that a value of a document, or of a query, is compared by."""
    return mark(name, text_of(value))


def _numbers(source: Document) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name, value in _named(source):
        number = number_of(value)
        if number is not None:
            found.setdefault(name, []).append(number)
    return found


def _named(source: Document) -> Iterator[tuple[str, Any]]:
    """Return the values that are found by their names, without those that have a field of their own."""
    if source.type is not None:
        yield "type", source.type
    if source.author is not None:
        yield "by", source.author
    for name, value in source.attributes.items():
        if name not in OWN_NAMES and value is not None:
            if isinstance(value, (list, tuple)):
                yield from ((name, each) for each in value if each is not None)
            else:
                yield name, value
