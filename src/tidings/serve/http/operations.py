"""Declared operations: method, address, scope, parameters and answers. Routes, checks and OpenAPI come from them."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.requests import Request

from tidings.model.errors import BadInput
from tidings.serve.http.access import Caller, Scope
from tidings.serve.http.problems import Problem
from tidings.serve.http.wire import milliseconds

Kind = Literal["string", "integer", "boolean", "date"]
LIMIT_MAX = 500
_VALUE_LENGTH_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Parameter:
    """One value of the address or the query string, checked before the handler sees it."""

    name: str
    help: str
    kind: Kind = "string"
    place: Literal["query", "path", "header"] = "query"
    values: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    default: Any = None
    example: Any = None
    pattern: str | None = None
    """What a text looks like, for readers of the schema; the handler checks it."""

    def read(self, text: str) -> Any:
        """Return the value, or raise Problem saying what is wrong with it."""
        if "\0" in text or len(text) > _VALUE_LENGTH_MAX:
            raise self._wrong("holds a NUL character or is too long")
        if self.values and text not in self.values:
            raise self._wrong(f"must be one of {', '.join(self.values)}", 404 if self.place == "path" else 400)
        if self.kind == "integer":
            return self._integer(text)
        if self.kind == "boolean":
            if text not in ("true", "false"):
                raise self._wrong("must be true or false")
            return text == "true"
        if self.kind == "date":
            return self._date(text)
        return text

    def _integer(self, text: str) -> int:
        low = self.minimum if self.minimum is not None else -(2**63)
        high = self.maximum if self.maximum is not None else 2**63 - 1
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high):
            raise self._wrong(f"must be a whole number from {low:,} to {high:,}")
        return int(text)

    def _date(self, text: str) -> int:
        ms = milliseconds(text)
        if ms is None:
            raise self._wrong("must be a date such as 2026-01-31 or a time such as 2026-01-31T12:00:00Z")
        return ms

    def _wrong(self, what: str, status: int = 400) -> Problem:
        return Problem(status, f"{self.name} {what}.", where=f"{self.place} parameter {self.name}")

    def schema(self) -> dict[str, Any]:
        """Return its JSON Schema."""
        schema: dict[str, Any] = {"type": "string" if self.kind == "date" else self.kind}
        if self.values:
            schema["enum"] = list(self.values)
        if self.minimum is not None:
            schema["minimum"] = self.minimum
        if self.maximum is not None:
            schema["maximum"] = self.maximum
        if self.default is not None:
            schema["default"] = self.default
        if self.pattern is not None:
            schema["pattern"] = self.pattern
        if self.kind == "date":
            schema["pattern"] = r"^\d{4}-\d\d-\d\d"
        return schema


LIMIT = Parameter("limit", "How many at most.", "integer", minimum=1, maximum=LIMIT_MAX, default=50)
CURSOR = Parameter("cursor", "Where to go on: `next_cursor` of the page before.")


@dataclass(frozen=True, slots=True)
class Call:
    """One request, checked: who asks, and the values of its parameters (absent ones are None or their default)."""

    request: Request
    caller: Caller
    values: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


Handler = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class RequestBody:
    """What a request carries."""

    schema: Mapping[str, Any]
    example: Any
    media_types: tuple[str, ...] = ("application/json",)
    required: bool = True
    help: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing the server does. There is no route without a declared scope."""

    method: str
    path: str
    scope: Scope
    handler: Handler
    summary: str
    help: str = ""
    tag: str = "operations"
    parameters: tuple[Parameter, ...] = ()
    body: RequestBody | None = None
    answer: Any = None
    """The schema of the answer: a Struct type, or a JSON Schema with Struct types inside."""
    status: int = 200
    media_type: str = "application/json"
    example: Any = None
    problems: tuple[int, ...] = ()
    """Statuses of problems besides those every operation may have."""
    is_page: bool = False
    """For people: errors are pages, cookies count, and OpenAPI does not list it."""
    any_query: bool = False
    """Unknown query parameters are ignored instead of refused."""

    @property
    def writes(self) -> bool:
        """Tell whether it changes anything."""
        return self.method not in ("GET", "HEAD")

    def read(self, request: Request) -> dict[str, Any]:
        """Check every parameter of a request and return their values."""
        values = {each.name: each.default for each in self.parameters}
        declared = {each.name: each for each in self.parameters}
        for name, text in request.path_params.items():
            values[name] = declared[name].read(str(text)) if name in declared else str(text)
        seen: set[str] = set()
        for name, text in request.query_params.multi_items():
            parameter = declared.get(name)
            if parameter is None or parameter.place != "query":
                if self.any_query:
                    continue
                raise self._unknown(name)
            if name in seen:
                raise Problem(400, f"{name} is given twice.", where=f"query parameter {name}")
            seen.add(name)
            # A form sends its empty fields too; a program that does so has lost a value.
            if text == "" and (self.is_page or (parameter.kind == "string" and not parameter.values)):
                continue
            values[name] = parameter.read(text)
        return values

    def _unknown(self, name: str) -> Problem:
        names = [each.name for each in self.parameters if each.place == "query"]
        near = difflib.get_close_matches(name[:50], names, n=1)
        helps = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(names) or 'none'}."
        return Problem(400, "A query parameter is not known here.", where="query string", helps=helps)


def bad_input(error: BadInput, text: str | None = None, where: str | None = None) -> Problem:
    """Tell a caller what is wrong, pointing at the character where that is known."""
    extra: dict[str, Any] = {}
    if error.position is not None:
        extra = {"position": error.position}
        if text is not None:
            extra["pointer"] = f"{text}\n{' ' * error.position}^"
    return Problem(400, f"{error}.".replace("..", "."), where=where, extra=extra)
