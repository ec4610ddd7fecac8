"""What an attempt leaves besides its item's row: journal, body, links, card, document, children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from tidings.model.item import Finding, JournalKind, ref
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Presentation
from tidings.model.settlement import Settlement
from tidings.store.adopting import Arrival, adopt
from tidings.store.database import Tx
from tidings.store.links import BY_CHILD, replace_links
from tidings.store.shelving import clean, put_presentations
from tidings.store.steps import keep

ERROR_CHARS_MAX = 500
CAUSE_CHARS_MAX = 200
DELIVERY, ANNOUNCES = "delivery", "announces"
_BY_PIPELINE = attrgetter("pipeline")


def write_effects(tx: Tx, pipelines: Mapping[str, Pipeline], held: list[Settlement]) -> int:
    """Write the effects of settlements whose right to them is proven; return how many children were born."""
    if not held:
        return 0
    tx.many("insert_journal", [journal_row(s) for s in held])
    held = [s for s in held if s.body is not None or s.presents or s.accepts or s.links is not None or s.children]
    if not held:
        return 0
    _replace_bodies(tx, held)
    replace_links(tx, [(s.pipeline, ref(s.kind, s.key), s.links, s.token > 1) for s in held if s.links is not None])
    shown = sorted((s for s in held if s.presents), key=_BY_PIPELINE)
    for name, group in groupby(shown, key=_BY_PIPELINE):
        put_presentations(tx, pipelines[name], [shown_row(s) for s in group])
    return bear_children(tx, pipelines, parents(held))


def shown_row(s: Settlement) -> tuple[int, str, str, int, Presentation | None]:
    """Return what the shelf wants to know of a settlement."""
    return (s.id, s.kind, s.key, s.revision, s.presentation)


def _replace_bodies(tx: Tx, held: list[Settlement]) -> None:
    if bodies := [(s.id, s.revision, s.body) for s in held if s.body is not None]:
        tx.many("replace_body", bodies)
    if outdated := [(s.id,) for s in held if s.accepts and s.revision > 1]:
        tx.many("drop_other_bodies", outdated)


class Parent(NamedTuple):
    """What bears children: an item whose attempt is settled, or that was moved by hand."""

    pipeline: str
    kind: str
    key: str
    children: tuple[Finding, ...]


def parents(held: Sequence[Settlement]) -> list[Parent]:
    """Return those settlements that bear children."""
    return [Parent(s.pipeline, s.kind, s.key, s.children) for s in held if s.children]


def bear_children(tx: Tx, pipelines: Mapping[str, Pipeline], bearing: Sequence[Parent]) -> int:
    """Give birth to children, or new revisions to those that are known."""
    children = [child for parent in bearing for child in parent.children]
    if not children:
        return 0
    # A delivery states whom it announces; other children state their own links when they are processed.
    announced = [
        (parent.pipeline, ANNOUNCES, ref(DELIVERY, child.key), BY_CHILD, ref(parent.kind, parent.key), None)
        for parent in bearing
        for child in parent.children
        if child.kind == DELIVERY
    ]
    tx.many("insert_link", dict.fromkeys(announced))
    # One order for all: two parents bearing the same children at once do not wait for each other in a circle.
    children.sort(key=lambda child: (child.pipeline, child.kind, child.key))
    return sum(
        len(adopt(tx, pipelines, [Arrival(child, 0) for child in group]).born)
        for _, group in groupby(children, key=_BY_PIPELINE)
    )


def trouble(s: Settlement) -> tuple[str | None, str | None]:
    """Return error and cause as they can be kept."""
    error = clean(s.error)[:ERROR_CHARS_MAX] if s.error else None
    return error, clean(s.cause)[:CAUSE_CHARS_MAX] if s.cause else None


def journal_row(s: Settlement, kind: JournalKind = "attempt") -> tuple[Any, ...]:
    """Return the journal's row of an attempt; one at an item that was not born yet tells of both."""
    attempt = s.attempts if s.ended in ("retried", "postponed", "parked", "dead") else 0
    error, steps = trouble(s)[0], keep(s.steps)
    return (s.id, kind, s.token, attempt, s.state_before, s.state, s.ended, error, None, steps)
