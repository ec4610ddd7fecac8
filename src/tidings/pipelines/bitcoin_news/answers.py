"""What providers answer, before we know whether it is what we asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from tidings.model.errors import BadInput, Transient
from tidings.model.item import Rejected
from tidings.model.web import Response
from tidings.pipelines.bitcoin_news.article import Sighting

Record = TypeVar("Record")

MARK_IDS = 50
"""How many of a run's newest ids the next run compares with: some of them may be withdrawn by then."""


def json_object(response: Response, who: str) -> dict[str, Any]:
    """Decode an answer that should be a JSON object; a gateway's HTML or an empty body is trouble that passes."""
    body = response.body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not body:
        raise Transient(f"{who} answered {response.status} with an empty body")
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        kind = "HTML" if body.startswith(b"<") else "something that is no JSON"
        told = f"{who} answered {response.status} with {kind}: a gateway or a block page stands between"
        raise Transient(told) from error
    if not isinstance(decoded, dict):
        raise Transient(f"{who} answered {response.status} with JSON that is no object")
    return decoded


def records(answer: dict[str, Any], who: str) -> list[Any]:
    """Return the answer's list of articles; its absence is an error even where the status says success."""
    results = answer.get("results")
    if not isinstance(results, list):
        raise Transient(f"{who} claims success but lists no results")
    return results


def known_ids(mark: Any) -> frozenset[str]:
    """Read the ids a source kept of its last completed run; anything unexpected counts as none."""
    return frozenset(i for i in mark if isinstance(i, str)) if isinstance(mark, list | tuple) else frozenset()


def read_all(
    found: Iterable[Record], read: Callable[[Record], Sighting]
) -> tuple[list[Sighting], tuple[Rejected, ...]]:
    """Turn records into sightings; a record that cannot be one is named and harms no other."""
    sightings, rejected = [], []
    for number, record in enumerate(found, 1):
        try:
            sightings.append(read(record))
        except BadInput as error:
            rejected.append(Rejected(number, str(error)))
    return sightings, tuple(rejected)
