"""Whether a query means a document in memory: the same words, stems and comparisons as in the search index."""

from __future__ import annotations

import operator as comparisons
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from tidings.model.publication import Document
from tidings.model.query import Query
from tidings.model.query_tree import AllOf, AnyOf, Compare, InThread, Not, Part, Words
from tidings.model.values import number_of, text_of, url_words, values_of
from tidings.model.words import forms, stem, tokens

_ORDER: Mapping[str, Callable[[float, float], bool]] = {
    ">": comparisons.gt,
    ">=": comparisons.ge,
    "<": comparisons.lt,
    "<=": comparisons.le,
}


def matches(query: Query, document: Document, pipeline: str = "") -> bool:
    """Tell whether a document is meant. Threads are known to the index alone: within one, nothing is."""
    return _holds(query.root, _Subject(document, pipeline))


class _Subject:
    """A document with what is asked of it, worked out once."""

    def __init__(self, document: Document, pipeline: str) -> None:
        self.document = document
        self.pipeline = pipeline

    @cached_property
    def title(self) -> list[str]:
        return tokens(self.document.title)

    @cached_property
    def text(self) -> list[str]:
        return tokens(self.document.text)

    @cached_property
    def url(self) -> list[str]:
        return url_words(self.document.url or "")


def _holds(part: Part, subject: _Subject) -> bool:
    match part:
        case AllOf(parts):
            return all(_holds(each, subject) for each in parts)
        case AnyOf(parts):
            return any(_holds(each, subject) for each in parts)
        case Not(inner):
            return not _holds(inner, subject)
        case Words():
            return _is_said(part, subject)
        case Compare():
            return _compares(part, subject)
        case InThread():
            return False


def _is_said(part: Words, subject: _Subject) -> bool:
    wanted = tokens(part.text)
    fields = {"title": (subject.title,), "text": (subject.text,), "": (subject.title, subject.text)}[part.field]
    if part.is_prefix:
        return any(_stand(wanted, said, str.startswith) for said in fields)
    if len(wanted) == 1:
        language = subject.document.language
        root = stem(wanted[0], language)
        return any(root in forms(token, language) for said in fields for token in said)
    return any(_stand(wanted, said, str.__eq__) for said in fields)


def _stand(wanted: Sequence[str], said: Sequence[str], ends: Callable[[str, str], bool]) -> bool:
    """Tell whether words stand in a row; the last of them is compared as told."""
    if not wanted:
        return False
    *first, last = wanted
    count = len(first)
    return any(
        ends(said[place + count], last) and said[place : place + count] == first for place in range(len(said) - count)
    )


def _compares(part: Compare, subject: _Subject) -> bool:
    if part.name == "url":
        return part.operator == "=" and _stand(url_words(str(part.value)), subject.url, str.__eq__)
    values = values_of(subject.document, subject.pipeline, part.name)
    if part.operator == "=":
        wanted = text_of(part.value)
        return any(text_of(value) == wanted for value in values)
    numbers = (number_of(value) for value in values)
    return any(number is not None and _ORDER[part.operator](number, float(part.value)) for number in numbers)
