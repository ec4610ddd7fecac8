"""What is new in a thread, since a mark that an earlier answer gave or since a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from tidings.serve.api.threads import ThreadPlace, change_card, places_of
from tidings.serve.http.operations import Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.wire import milliseconds

_MARK = re.compile(r"m(\d{1,18})", re.ASCII)
IsNew = Callable[[ThreadPlace], bool]
SINCE = Parameter(
    "since",
    "Only what came since: the `mark` of an earlier answer, or a time such as 2026-01-31T12:00:00Z, which is compared "
    "with the time that each reply itself tells.",
    pattern=r"^(m\d{1,18}|\d{4}-\d\d-\d\d.*)$",
    example="2026-01-31T12:00:00Z",
)
HELP = (
    " `mark` stands for how much of the thread this answer knows: with `since` it gives what came later, each place "
    "marked `new: true` and counted in `new_places`, with the places above it. A reply whose processing had to be "
    "repeated counts from its arrival; `/api/v1/changes` misses nothing."
)
PROPERTIES: dict[str, Any] = {
    "mark": {"type": "string", "pattern": r"^m\d{1,18}$"},
    "new_places": {"type": "integer", "description": "With `since`: how many places are new."},
    "new": {"type": "boolean", "description": "With `since`: this place came since then."},
}


def read_since(text: str | None) -> IsNew | None:
    """Return which places are new, or None where that was not asked."""
    if text is None:
        return None
    if found := _MARK.fullmatch(text):
        number = int(found[1])
        return lambda place: place.number > number
    since_ms = milliseconds(text)
    if since_ms is None:
        raise Problem(
            400,
            "since must be a mark of an earlier answer or a time.",
            where="query parameter since",
            helps="A mark looks like m1234, a time like 2026-01-31T12:00:00Z or 2026-01-31.",
        )
    return lambda place: place.at is not None and place.at >= since_ms


def tell_news(root: ThreadPlace, since: str | None) -> None:
    """Write the mark of a thread into its root; where it was asked, leave only what is new and what is above it."""
    is_new, newest = read_since(since), max(place.number for place in places_of(root))
    # A mirror has cards and no items, whose numbers marks are made of.
    if not newest and since is not None and _MARK.fullmatch(since):
        raise Problem(
            400,
            "This copy knows no marks.",
            where="query parameter since",
            helps="Ask with a time, such as 2026-01-31T12:00:00Z, or ask the server that has the database.",
        )
    facts: dict[str, Any] = {"mark": f"m{newest}"} if newest else {}
    if is_new is not None:
        facts["new_places"] = _narrow(root, is_new)
    change_card(root, facts)


def _narrow(root: ThreadPlace, is_new: IsNew) -> int:
    """Drop every place that is neither new nor above a new one; return how many are new."""
    kept: set[str] = set()
    found = 0
    for place in reversed(places_of(root)):
        place.children = [child for child in place.children if child.id in kept]
        if place is not root and place.raw is not None and is_new(place):
            change_card(place, {"new": True})
            kept.add(place.id)
            found += 1
        elif place.children:
            kept.add(place.id)
    return found


def example_of(card: msgspec.Struct | None) -> dict[str, Any] | None:
    """Make an example of a thread's answer."""
    if card is None:
        return None
    return {**msgspec.to_builtins(card), "mark": "m1234", "children": []}
