"""One query language for API, command line, feeds and routes.

    query     := part*
    part      := ["-"] (word | "a phrase" | name ":" [op] value)
    op        := ">" | ">=" | "<" | "<="          (numbers and dates)
    value     := word | "quoted words"

`before:2026-01-01` and `after:2026-01-01` compare the document's time. Every part must hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from tidings.model.errors import BadInput
from tidings.model.publication import Document
from tidings.model.words import words

LENGTH_MAX = 1_000
PARTS_MAX = 40
Operator = Literal["=", ">", ">=", "<", "<="]
COLUMNS = frozenset({"type", "by", "score", "time", "pipeline"})

_PART = re.compile(
    r"""\s*(?P<not>-)?(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*):(?P<op>>=|<=|>|<)?)?(?:"(?P<quoted>[^"]*)(?P<close>"?)|(?P<word>[^\s"]+))?"""
)


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase of the text."""

    text: str
    is_phrase: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Qualifier:
    """A condition on a named attribute; `value` is a number for comparisons and times in milliseconds."""

    name: str
    operator: Operator
    value: str | float
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked, parsed."""

    terms: tuple[Term, ...] = ()
    qualifiers: tuple[Qualifier, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether everything matches."""
        return not self.terms and not self.qualifiers


def parse(text: str) -> Query:
    """Parse a query, or raise BadInput pointing at the offending character."""
    if len(text) > LENGTH_MAX:
        raise BadInput(f"the query has {len(text)} characters; at most {LENGTH_MAX} are allowed", position=LENGTH_MAX)
    if "\0" in text:
        raise BadInput("the query holds a NUL character", position=text.index("\0"))
    terms: list[Term] = []
    qualifiers: list[Qualifier] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _PART.match(text, position)
        assert match is not None  # every group is optional
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        part = _part(match, start)
        if isinstance(part, Term):
            terms.append(part)
        else:
            qualifiers.append(part)
        if len(terms) + len(qualifiers) > PARTS_MAX:
            raise BadInput(f"the query has more than {PARTS_MAX} parts", position=start)
        position = match.end()
    return Query(tuple(terms), tuple(qualifiers))


def _part(match: re.Match[str], start: int) -> Term | Qualifier:
    quoted, word, name = match["quoted"], match["word"], match["name"]
    negated = match["not"] is not None
    if quoted is not None and not match["close"]:
        raise BadInput(
            'a quotation mark is opened and never closed; add the second "', position=match.start("quoted") - 1
        )
    value = quoted if quoted is not None else word
    if name is not None:
        if not value:
            raise BadInput(f"{name}: needs a value, such as {name}:something", position=match.end("name"))
        return _qualifier(name.lower(), match["op"], value, negated, match.end() - len(value) - (quoted is not None))
    if not value:
        raise BadInput("a minus needs a word behind it" if negated else "empty quotation marks", position=start)
    return Term(value, is_phrase=quoted is not None, negated=negated)


def _qualifier(name: str, operator: str | None, value: str, negated: bool, position: int) -> Qualifier:
    if name in ("before", "after", "since", "until"):
        at = _time(value, position)
        return Qualifier("time", "<" if name in ("before", "until") else ">=", at, negated)
    if operator is None:
        return Qualifier(name, "=", value, negated)
    try:
        number = float(_time(value, position)) if re.match(r"\d{4}-", value) else float(value)
    except ValueError:
        raise BadInput(
            f"{name}:{operator} compares numbers or dates; {value!r} is neither", position=position
        ) from None
    if number != number or number in (float("inf"), float("-inf")):
        raise BadInput(f"{name}:{operator} needs a finite number", position=position)
    return Qualifier(name, operator, number, negated)  # type: ignore[arg-type]  # the pattern allows only these


def _time(value: str, position: int) -> int:
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadInput(f"{value!r} is no date; write one like 2026-01-31", position=position) from None


def point_at(text: str, error: BadInput) -> str:
    """Show the query with a mark under the offending character."""
    if error.position is None:
        return str(error)
    return f"{error}\n  {text}\n  {' ' * error.position}^"


def matches(query: Query, document: Document, pipeline: str = "") -> bool:
    """Tell whether a document in memory is meant, by the same rules as the search index."""
    haystack = _words(f"{document.title} {document.text}")
    for term in query.terms:
        found = f" {_words(term.text)} " in f" {haystack} "
        if found == term.negated:
            return False
    values = fields_of(document, pipeline)
    return all(_holds(q, values.get(q.name)) != q.negated for q in query.qualifiers)


def fields_of(document: Document, pipeline: str = "") -> Mapping[str, Any]:
    """Return what qualifiers compare, by name."""
    return {
        **document.attributes,
        "type": document.type,
        "by": document.author,
        "score": document.score,
        "time": document.time_ms,
        "pipeline": pipeline,
    }


def _words(text: str) -> str:
    return " ".join(words(text)).lower()


def _holds(qualifier: Qualifier, value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds(qualifier, each) for each in value)
    if value is None:
        return False
    if qualifier.operator == "=":
        return str(value).lower() == str(qualifier.value).lower()
    try:
        number = (
            float(value) if not isinstance(value, str) or not re.match(r"\d{4}-", value) else float(_time(value, 0))
        )
    except (ValueError, BadInput):
        return False
    wanted = float(qualifier.value)
    return {">": number > wanted, ">=": number >= wanted, "<": number < wanted, "<=": number <= wanted}[
        qualifier.operator
    ]
