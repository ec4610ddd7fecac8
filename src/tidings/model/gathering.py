"""What a finding adds to a card although nothing of the item has changed: who else lists an article.

It costs no attempt and no write an item: each run keeps what it gathered in one entry of the shelf, beside the cards,
and readers see both as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tidings.model.item import Finding
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection


class Gathered(NamedTuple):
    """What a run adds to one card."""

    collection: str
    id: str
    values: dict[str, Any]


def gathered_of(pipeline: Pipeline, findings: Sequence[Finding]) -> list[Gathered]:
    """Return what findings say of the fields that gather, whether or not anything is new in them."""
    gathering = {each.kind: each for each in pipeline.collections if each.gathers}
    return [
        Gathered(collection.name, finding.key, values)
        for finding in findings
        if (collection := gathering.get(finding.kind)) and (values := _values(collection, finding.payload))
    ]


def gathered_key(collection: Collection) -> str:
    """Return where the entry stands on the shelf: `{id: {name: value}}`."""
    return f"gathered:{collection.name}"


def with_gathered(collection: Collection, card: bytes, values: dict[str, Any]) -> bytes:
    """Return an encoded card with what was gathered; what it says itself stands."""
    assert collection.gathers is not None
    fields = msgspec.json.decode(card)
    fields[collection.gathers] = values | fields[collection.gathers]
    return msgspec.json.encode(fields)


def _values(collection: Collection, payload: bytes) -> dict[str, Any]:
    values = msgspec.json.decode(payload).get(collection.gathers)
    return values if isinstance(values, dict) else {}
