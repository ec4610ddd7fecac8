"""What "newer" means, field by field: a second copy of an item is merged into the one readers know.

Items carry no version and no time of change, so a copy's age follows from how it came and from what only grows. A copy
read from the live API is newer than whatever we have. An uploaded copy may be of any age: it counts as newer than
another upload unless its counts are lower, and as newer than a live copy only if its counts are higher.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tidings.pipelines.hacker_news.body import Given, ItemBody

FIELDS = Given.__struct_fields__
_WITHDRAWN = {"by": None, "title": None, "url": None, "text": None}
"""What a deleted item no longer has."""


def merge(known: ItemBody, new: ItemBody) -> tuple[ItemBody, tuple[str, ...]]:
    """Return the known item brought up to date by another copy of it, and the names of the fields that changed."""
    is_live = new.source_type == "FIREBASE"
    base, other = (new, known) if is_newer(known, new) else (known, new)
    values: dict[str, Any] = {
        name: getattr(other, name) for name in FIELDS if getattr(base, name) is None and name not in _FLAGS
    }
    if is_live:
        values["kids"] = new.kids
    else:
        values |= {name: _most(getattr(known, name), getattr(new, name)) for name in ("score", "descendants")}
        values |= {name: _joined(getattr(base, name), getattr(other, name)) for name in ("kids", "parts")}
        values |= {name: getattr(known, name) or getattr(new, name) for name in _FLAGS}
    if known.type is not None and not known.type_inferred:
        values["type"] = known.type
    if values.get("deleted", base.deleted):
        values |= _WITHDRAWN
    merged = replace(base, **values, **_notes(known, new))
    return merged, tuple(name for name in FIELDS if getattr(merged, name) != getattr(known, name))


_FLAGS = ("dead", "deleted")


def withdraw(body: ItemBody) -> ItemBody:
    """Return a deleted item without its words; its place in the thread stays."""
    return replace(body, **_WITHDRAWN)


def is_newer(known: ItemBody, new: ItemBody) -> bool:
    """Tell whether the new copy is the younger of the two, so that its texts count."""
    if new.source_type == "FIREBASE":
        return True
    lower, higher = _compared(known, new)
    if known.source_type == "FIREBASE":
        return higher and not lower
    return higher or not lower


def _compared(known: ItemBody, new: ItemBody) -> tuple[bool, bool]:
    """Tell whether anything that grows with time is lower, and whether anything is higher, in the new copy."""
    pairs = [(known.score, new.score), (known.descendants, new.descendants)]
    if known.kids is not None and new.kids is not None:
        pairs.append((len(known.kids), len(new.kids)))
    if known.deleted or new.deleted:
        pairs = [(int(known.deleted or False), int(new.deleted or False))]
    elif known.dead or new.dead:
        pairs.append((int(known.dead or False), int(new.dead or False)))
    both = [(old, young) for old, young in pairs if old is not None and young is not None]
    return any(young < old for old, young in both), any(young > old for old, young in both)


def _most(known: int | None, new: int | None) -> int | None:
    return max((count for count in (known, new) if count is not None), default=None)


def _joined(first: tuple[int, ...] | None, second: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Keep the younger copy's order; what only the other one names follows."""
    if not first or not second:
        return first or second
    return tuple(dict.fromkeys(first + second))


def _notes(known: ItemBody, new: ItemBody) -> dict[str, Any]:
    """Keep our own notes: when it first came, and how the new copy fared."""
    return {
        "type_inferred": known.type_inferred and new.type_inferred,
        "ingested_at": known.ingested_at or new.ingested_at,
        "last_updated": new.last_updated,
        "arrival": None,
        "misplaced": None,
        "placed_below": None,
        "indexed_at": None,
        "retry_count": new.retry_count,
        "last_failure_at": new.last_failure_at,
        "error": None,
        "stack": None,
        "retry_attempt_at": new.retry_attempt_at,
    }
