"""How our nouns look on the wire: plain values, RFC 3339 times, opaque ids; and the JSON Schema of the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from tidings.model.clock import YEAR_1_MS, YEAR_9999_MS, read_time, rfc3339
from tidings.model.item_views import DeadGroup, DeliveryView, ItemRow, ItemView
from tidings.model.views import AlertView, ChannelView, PipelineView, Point, SourceView, StatusView

VIEWS: tuple[type[msgspec.Struct], ...] = (
    AlertView,
    ChannelView,
    DeadGroup,
    DeliveryView,
    ItemRow,
    ItemView,
    PipelineView,
    Point,
    SourceView,
    StatusView,
)
"""What operators see: written by `plain`, and described in the OpenAPI document as written."""

_PLAIN_FIELDS = frozenset({"body", "accepted"})
"""Fields that hold a pipeline's own JSON: passed on as they are."""
_ID_FIELDS = frozenset({"id", "item", "sample_id"})
_MS_SECONDS_BORDER = 100_000_000_000

encode = msgspec.json.encode


def plain(value: Any) -> Any:
    """Turn a view into JSON values: times as RFC 3339, numeric ids as strings."""
    if isinstance(value, msgspec.Struct):
        return {
            name: (item if name in _PLAIN_FIELDS else _field(name, item))
            for name in value.__struct_fields__
            for item in (getattr(value, name),)
        }
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def _field(name: str, value: Any) -> Any:
    if type(value) is int:
        if is_time(name):
            return rfc3339(value)
        return str(value) if name in _ID_FIELDS else value
    return plain(value)


def is_time(name: str) -> bool:
    """Tell whether a field of a view holds a time in milliseconds."""
    return name == "at" or name.endswith("_at") or name == "lease_until"


def schemas(
    types: Iterable[type[Any]], views: Iterable[type[msgspec.Struct]]
) -> tuple[dict[str, Any], dict[type, Any]]:
    """Return the JSON Schema components of Structs, and how each given type is referred to.

    `views` are written by `plain`: their times are strings and their ids opaque.
    """
    wanted = [*types, *views]
    references, components = msgspec.json.schema_components(wanted, ref_template="#/components/schemas/{name}")
    shown = {_title(view) for view in _reachable(views)}
    for name, schema in components.items():
        if name in shown:
            _as_written(schema)
    return components, dict(zip(wanted, references, strict=True))


def _title(view: type[Any]) -> str:
    return view.__name__


def _reachable(views: Iterable[type[msgspec.Struct]]) -> set[type[msgspec.Struct]]:
    """Collect the Structs inside Structs, which are written the same way."""
    found: set[type[msgspec.Struct]] = set()
    waiting: list[Any] = [msgspec.inspect.type_info(view) for view in views]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls not in found:
                found.add(info.cls)
                waiting += [field.type for field in info.fields]
        elif isinstance(info, msgspec.inspect.UnionType):
            waiting += info.types
        elif isinstance(info, msgspec.inspect.ListType):
            waiting.append(info.item_type)
        elif isinstance(info, msgspec.inspect.DictType):
            waiting.append(info.value_type)
    return found


def _as_written(schema: dict[str, Any]) -> None:
    for name, field in schema.get("properties", {}).items():
        if not any(each.get("type") == "integer" for each in field.get("anyOf", (field,))):
            continue
        if is_time(name):
            schema["properties"][name] = _rewritten(field, {"type": "string", "format": "date-time"})
        elif name in _ID_FIELDS:
            schema["properties"][name] = _rewritten(field, {"type": "string"})


def _rewritten(field: dict[str, Any], text: dict[str, Any]) -> dict[str, Any]:
    may_be_null = any(each.get("type") == "null" for each in field.get("anyOf", ()))
    return {"anyOf": [text, {"type": "null"}]} if may_be_null else text


def milliseconds(value: Any) -> int | None:
    """Read a time the way cards write it: RFC 3339 text, a date, Unix seconds or milliseconds."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        ms = int(value if abs(value) > _MS_SECONDS_BORDER else value * 1000)
        return ms if YEAR_1_MS <= ms <= YEAR_9999_MS else None
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d", value):
        return None
    return read_time(value)
