"""Declared operations: method, address, scope, parameters and answers. Routes, checks and OpenAPI come from them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
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
DATE_PATTERN = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]|$)"


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
    length_min: int = 0
    length_max: int = _VALUE_LENGTH_MAX
    pattern: str | None = None
    form: str = ""
    """The pattern in words: `must be ...`; without them the handler checks it."""
    is_required: bool = False
    default: Any = None
    example: Any = None

    def read(self, text: str) -> Any:
        """Return the value, or raise Problem saying what is wrong with it."""
        if "\0" in text:
            raise self._wrong("holds a NUL character")
        if not self.length_min <= len(text) <= self.length_max:
            raise self._wrong(f"must have {self.length_min:,} to {self.length_max:,} characters")
        if self.values and text not in self.values:
            status = 404 if self.place == "path" else 400
            raise self._wrong(f"must be one of {', '.join(self.values)}", status, near(text, self.values))
        if self.pattern is not None and self.form and not re.search(self.pattern, text):
            raise self._wrong(f"must be {self.form}")
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

    def missing(self) -> Problem:
        """Say that it is needed."""
        known = f" Known: {', '.join(self.values)}." if self.values else ""
        return Problem(400, f"{self.name} is needed.", where=self._where(), helps=f"{self.help}{known}")

    def _wrong(self, what: str, status: int = 400, helps: str | None = None) -> Problem:
        return Problem(status, f"{self.name} {what}.", where=self._where(), helps=helps)

    def _where(self) -> str:
        return f"header {self.name}" if self.place == "header" else f"{self.place} parameter {self.name}"

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
        if schema["type"] == "string" and not self.values:
            schema |= self._text_schema()
        return schema

    def _text_schema(self) -> dict[str, Any]:
        """Return the limits of a text."""
        schema: dict[str, Any] = {"maxLength": self.length_max}
        if self.length_min:
            schema["minLength"] = self.length_min
        if pattern := DATE_PATTERN if self.kind == "date" else self.pattern:
            schema["pattern"] = pattern
        return schema


def near(text: str, values: Iterable[str]) -> str | None:
    """Return what was probably meant, as a sentence."""
    found = difflib.get_close_matches(text[:50], list(values), n=1)
    return f"Did you mean {found[0]}?" if found else None


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

    schema: Any
    """A Struct type, or a JSON Schema with Struct types inside."""
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
    accepted: Any = None
    """The schema of a 202, where the answer may have to be fetched first."""
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
        values |= self._read_headers(request)
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
        for parameter in self.parameters:
            if parameter.is_required and values[parameter.name] is None:
                raise parameter.missing()
        return values

    def _read_headers(self, request: Request) -> dict[str, Any]:
        found = {each.name: request.headers.getlist(each.name) for each in self.parameters if each.place == "header"}
        for name, texts in found.items():
            if len(texts) > 1:
                raise Problem(400, f"{name} is given twice.", where=f"header {name}")
        return {each.name: each.read(found[each.name][0]) for each in self.parameters if found.get(each.name)}

    def _unknown(self, name: str) -> Problem:
        names = [each.name for each in self.parameters if each.place == "query"]
        helps = near(name, names) or f"Known: {', '.join(names) or 'none'}."
        return Problem(400, "A query parameter is not known here.", where="query string", helps=helps)


def bad_input(error: BadInput, text: str | None = None, where: str | None = None) -> Problem:
    """Tell a caller what is wrong, pointing at the character where that is known."""
    extra: dict[str, Any] = {}
    if error.position is not None:
        extra = {"position": error.position}
        if text is not None:
            extra["pointer"] = f"{text}\n{' ' * error.position}^"
    return Problem(400, f"{error}.".replace("..", "."), where=where, extra=extra)
