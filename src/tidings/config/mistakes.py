"""Mistakes in the configuration, told by their key and with what helps; never with a value, which may be a secret."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from tidings.model.errors import Misconfigured

Path = tuple[str, ...]
Origins = Mapping[Path, str]
"""Which environment variable set the value at a place."""

_SHOWN_MAX = 10
_WORDS = {
    "missing": "it is missing",
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "dict_type": "write a table",
    "float_parsing": "write a number",
    "float_type": "write a number",
    "int_from_float": "write a whole number",
    "int_parsing": "write a whole number",
    "int_type": "write a whole number",
    "list_type": "write a list",
    "model_attributes_type": "write a table",
    "model_type": "write a table",
    "string_type": "write a text",
    "tuple_type": "write a list",
    "greater_than": "write more than {gt}",
    "greater_than_equal": "write {ge} or more",
    "less_than": "write less than {lt}",
    "less_than_equal": "write {le} or less",
    "literal_error": "write {expected}",
}
"""What pydantic says of wrong values, for people who write TOML."""


def checked(model: type[Any], values: Mapping[str, Any], place: Path, origins: Origins) -> tuple[Any, list[str]]:
    """Return the checked values and no mistake, or none and every mistake."""
    try:
        return model.model_validate(values), []
    except ValidationError as error:
        mistakes = error.errors(include_input=False)
        return None, [tell((*place, *map(str, each["loc"])), _what(each, model), origins) for each in mistakes]


def tell(place: Path, what: str, origins: Origins) -> str:
    """Name a mistake by its key, and by the environment variable that made it."""
    variables = [name for path, name in origins.items() if path[: len(place)] == place or place[: len(path)] == path]
    key = ".".join(place)
    return f"{variables[0]} ({key}): {what}" if variables else f"{key}: {what}"


def refuse(mistakes: list[str]) -> None:
    """Raise what is wrong, all of it at once, if anything is."""
    if len(mistakes) == 1:
        raise Misconfigured(mistakes[0])
    if mistakes:
        more = [f"and {len(mistakes) - _SHOWN_MAX} more"] if len(mistakes) > _SHOWN_MAX else []
        lines = [f"{len(mistakes)} settings are wrong:", *mistakes[:_SHOWN_MAX], *more]
        raise Misconfigured("\n  ".join(lines))


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest what was meant, or list what there is."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(sorted(known))}"


def _what(error: Any, model: type[Any]) -> str:
    if error["type"] != "extra_forbidden":
        words = _WORDS.get(error["type"])
        return words.format(**error.get("ctx", {})) if words else str(error["msg"]).removeprefix("Value error, ")
    for part in error["loc"][:-1]:
        field = model.model_fields.get(part)
        inner = field.annotation if field is not None else None
        candidates = [inner, *get_args(inner)]
        nested = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        model = nested or model
    return f"there is no such setting{nearest(str(error['loc'][-1]), model.model_fields)}"
