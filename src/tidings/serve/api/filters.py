"""What a collection's query parameters mean: predicates over cards, counts by facet, cursors."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from tidings.model.publication import Collection, Filter
from tidings.serve.http.operations import Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.wire import milliseconds

Card = Mapping[str, Any]
Predicate = Callable[[Card], bool]
Position = tuple[int, str]
"""A place in a list: the sort value and the key of the entry before it."""
UNKNOWN = "unknown"
_FACET_VALUES_MAX = 200


def parameter_of(wanted: Filter) -> Parameter:
    """Declare a filter's query parameter."""
    return Parameter(
        wanted.name, wanted.help or f"Only cards whose {wanted.field} fits.", wanted.type, values=wanted.values
    )


def predicate(collection: Collection, values: Mapping[str, Any]) -> Predicate | None:
    """Return what cards must satisfy, or None when every card does."""
    tests = [_test(each, values[each.name]) for each in collection.filters if values.get(each.name) is not None]
    if len(tests) < 2:
        return tests[0] if tests else None
    return lambda card: all(test(card) for test in tests)


def _test(wanted: Filter, value: Any) -> Predicate:
    compare = _comparison(wanted, value)

    def test(card: Card) -> bool:
        found = card.get(wanted.field)
        if isinstance(found, (list, tuple)):
            return any(compare(each) for each in found)
        return compare(found)

    return test


def _comparison(wanted: Filter, value: Any) -> Callable[[Any], bool]:
    if wanted.comparison in ("is", "has"):
        if wanted.type == "date":
            return lambda found: milliseconds(found) == value
        if wanted.type == "string":
            folded = str(value).casefold()
            return lambda found: (UNKNOWN if found is None else str(found).casefold()) == folded
        return lambda found: bool(found == value)
    measure: Callable[[Any], float | None] = milliseconds if wanted.type == "date" else _number
    limit = value if wanted.type in ("date", "integer") else _number(value)
    if wanted.comparison == "at_least":
        return lambda found: (number := measure(found)) is not None and limit is not None and number >= limit
    if wanted.comparison == "at_most":
        return lambda found: (number := measure(found)) is not None and limit is not None and number <= limit
    return lambda found: (number := measure(found)) is not None and limit is not None and number < limit


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def count_facets(collection: Collection, cards: Iterable[Card]) -> dict[str, dict[str, int]]:
    """Count the cards by each facet's values; declared values appear even when none has them."""
    counters: dict[str, Counter[str]] = {facet: Counter() for facet in collection.facets}
    if counters:
        for card in cards:
            for facet, counter in counters.items():
                counter.update(_values(card.get(facet)))
    return {f"{facet}_counts": _ordered(collection, facet, counter) for facet, counter in counters.items()}


def _values(found: Any) -> list[str]:
    if isinstance(found, (list, tuple)):
        return [str(each) for each in found] or [UNKNOWN]
    if isinstance(found, bool):
        return ["true" if found else "false"]
    return [UNKNOWN if found is None or found == "" else str(found)]


def _ordered(collection: Collection, facet: str, counter: Counter[str]) -> dict[str, int]:
    declared = collection.facet_values.get(facet, ())
    counts = {value: counter.pop(value, 0) for value in declared}
    unknown = counter.pop(UNKNOWN, None)
    counts |= dict(sorted(counter.most_common(_FACET_VALUES_MAX), key=lambda pair: (-pair[1], pair[0])))
    if UNKNOWN not in counts and (unknown is not None or declared):
        counts[UNKNOWN] = unknown or 0
    return counts


def write_cursor(*place: Any) -> str:
    """Make an opaque cursor of a place."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def read_position(cursor: str | None) -> Position | None:
    """Return the place in a list that a cursor names."""
    return None if cursor is None else _decode(cursor, Position)


def read_story_place(cursor: str | None) -> tuple[int, int] | None:
    """Return the place in the list of stories that a cursor names."""
    return None if cursor is None else _decode(cursor, tuple[int, int])


def read_number(cursor: str | None) -> int | None:
    """Return the number that a cursor holds."""
    return None if cursor is None else _decode(cursor, tuple[int])[0]


def _decode(cursor: str, form: Any) -> Any:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        place = msgspec.json.decode(raw, type=form)
    except (ValueError, binascii.Error, msgspec.DecodeError):
        place = None
    if (
        place is None
        or not -(2**63) <= place[0] < 2**63
        or any(isinstance(each, str) and "\0" in each for each in place[1:])
    ):
        raise Problem(
            400,
            "This cursor was not given out here.",
            where="query parameter cursor",
            helps="Take next_cursor of the page before, unchanged; leave cursor out to begin.",
        )
    return place
