"""Make findings of what is sent to us: one item in the form of the Firebase API, or of the public dumps.

Dumps write ids and times as strings, leave fields empty and often name no type.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from tidings.model.errors import BadInput
from tidings.model.item import LOW, NORMAL, Finding
from tidings.pipelines.hacker_news.body import KIND, PIPELINE, Given, SourceType

_ENCODE = msgspec.json.Encoder().encode
_OPENINGS = {
    way: (f'{{"source_type":"{way}",'.encode(), f'{{"source_type":"{way}","type_inferred":true,'.encode())
    for way in get_args(SourceType)
}
"""How a payload begins, by the way it came and whether its type is inferred."""
_WHERE = re.compile(r"^(.*?) - at `\$\.?([a-z_]*)(?:\[[^\]]*\])*`$")
_MISSING = re.compile(r"missing required field `(\w+)`")


def admit(value: Any, *, way: str) -> Finding:
    """Make a finding of one uploaded object, or raise BadInput saying what is wrong with it.

    What can be told from the object alone and leaves nothing to follow is refused here: no object, no positive id, a
    field of the wrong shape. Everything else is remembered, and judged by the workflow.
    """
    return finding_of(given_of(value), way, LOW if way == "BULK" else NORMAL)


def given_of(value: Any) -> Given:
    """Read one object in any of the forms we accept."""
    if not isinstance(value, dict):
        raise BadInput("null is no item" if value is None else "an item must be a JSON object")
    try:
        given = msgspec.convert(value, Given, strict=False)
    except msgspec.ValidationError:
        given = _from_dump(value)
    if given.id <= 0:
        raise BadInput(f"id: {given.id} is not positive")
    return given


def finding_of(given: Given, way: str, priority: int = NORMAL) -> Finding:
    """Make a finding of a read item. The same item is the same finding, whichever way it came."""
    given, is_inferred = _normal(given)
    encoded = _ENCODE(given)
    fingerprint = blake2b(encoded, digest_size=12).hexdigest()
    # The way is no part of what the item is, so it is put in front of the fields that the fingerprint covers.
    payload = _OPENINGS.get(way, _OPENINGS["UNKNOWN"])[is_inferred] + encoded[1:]
    return Finding(PIPELINE, KIND, str(given.id), fingerprint, payload, priority)


def _normal(given: Given) -> tuple[Given, bool]:
    """Give equal items one form: nothing is absent rather than empty, and an option names its poll as its poll."""
    changes: dict[str, Any] = {}
    if "" in (given.by, given.title, given.url, given.text, given.type):
        changes = {name: None for name in ("by", "title", "url", "text", "type") if getattr(given, name) == ""}
    if given.kids is not None and not given.kids:
        changes["kids"] = None
    if given.parts is not None and not given.parts:
        changes["parts"] = None
    if given.dead is False:
        changes["dead"] = None
    if given.deleted is False:
        changes["deleted"] = None
    if given.type == "pollopt" and given.poll is None and given.parent is not None:
        # Old copies of the API name the poll of an option as its parent.
        changes |= {"poll": given.parent, "parent": None}
    is_inferred = not given.type and given.parent is not None and not given.title
    if is_inferred:
        changes["type"] = "comment"
    return (replace(given, **changes) if changes else given), is_inferred


def _from_dump(value: dict[str, Any]) -> Given:
    """Try again without the empty fields that dumps write for missing ones."""
    try:
        filled = {name: each for name, each in value.items() if each is not None and each != ""}
        return msgspec.convert(filled, Given, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(_reason(str(error))) from None


def _reason(message: str) -> str:
    if missing := _MISSING.search(message):
        return f"{missing[1]} is missing"
    if where := _WHERE.match(message):
        problem = where[1].replace("`", "").replace(" | null", "")
        return f"{where[2]}: {problem[:1].lower()}{problem[1:]}"
    return message
