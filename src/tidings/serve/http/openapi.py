"""The OpenAPI document, generated from the declared operations and the Structs' JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from tidings.serve.backend import ReadBackend
from tidings.serve.http.operations import Call, Operation, Parameter, RequestBody
from tidings.serve.http.problems import MEDIA_TYPE, SCHEMA, TITLES, example
from tidings.serve.http.replies import Encoded, Reply
from tidings.serve.http.wire import VIEWS, plain, schemas

_ALWAYS = (400, 429, 500, 503)
_ABOUT = """What tidings remembers, as JSON.

Times are RFC 3339 in UTC. Errors are problem documents (`application/problem+json`) that say what happened, where
and what helps. Lists take `limit` and `cursor` and return `next_cursor`. Reads answer with an `ETag` and honor
`If-None-Match`. Reads on loopback are open; everything else needs a bearer token whose scope (`read` < `ingest` <
`operate`) is high enough."""
_TAGS = {
    "search": "One query language, everywhere.",
    "syndication": "A feed of any search.",
    "operations": "What operators see and do.",
}


class OpenApi:
    """Serves the document; it is made once."""

    def __init__(self, backend: ReadBackend, operations: Iterable[Operation]) -> None:
        self.document = describe(backend, operations)
        self._encoded = Encoded(msgspec.json.encode(self.document))

    def operations(self) -> list[Operation]:
        """Declare the route."""
        return [Operation("GET", "/openapi.json", "read", self._show, "This document", is_page=False, any_query=True)]

    async def _show(self, _call: Call) -> Reply:
        return Reply(encoded=self._encoded)


def describe(backend: ReadBackend, operations: Iterable[Operation]) -> dict[str, Any]:
    """Describe every operation that is not a page."""
    shown = [each for each in operations if not each.is_page]
    components, references = _components(shown)
    paths: dict[str, dict[str, Any]] = {}
    for operation in shown:
        path = re.sub(r"\{(\w+):path\}", r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, references)
    tags = [{"name": name, "description": each.about} for name, each in backend.pipelines.items()]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tidings",
            "version": backend.version,
            "description": _ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": backend.root_path or "/"}],
        "tags": tags + [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": SCHEMA},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`tidings token create --scope read|ingest|operate` makes one.",
                }
            },
        },
    }


def _components(operations: list[Operation]) -> tuple[dict[str, Any], dict[type, Any]]:
    cards: list[type[msgspec.Struct]] = []
    for operation in operations:
        sent = operation.body.schema if operation.body is not None else None
        for found in _structs_in((operation.answer, sent)):
            if found not in cards and found not in VIEWS:
                cards.append(found)
    return schemas(cards, VIEWS)


def _structs_in(shape: Any) -> list[type[msgspec.Struct]]:
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        return [shape]
    if isinstance(shape, dict):
        return [found for value in shape.values() for found in _structs_in(value)]
    if isinstance(shape, (list, tuple)):
        return [found for value in shape for found in _structs_in(value)]
    return []


def _schema(shape: Any, references: dict[type, Any]) -> Any:
    """Put references in the place of Struct types."""
    if isinstance(shape, type):
        return references[shape]
    if isinstance(shape, dict):
        return {name: _schema(value, references) for name, value in shape.items()}
    if isinstance(shape, (list, tuple)):
        return [_schema(value, references) for value in shape]
    return shape


def _operation(operation: Operation, references: dict[type, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _name_of(operation),
        "summary": operation.summary,
        "tags": [operation.tag],
        "x-tidings-scope": operation.scope,
        "security": [] if operation.scope == "public" else [{"token": [operation.scope]}],
        "responses": _responses(operation, references),
    }
    if operation.help:
        described["description"] = operation.help
    if operation.parameters:
        described["parameters"] = [_parameter(each) for each in operation.parameters]
    if operation.body is not None:
        described["requestBody"] = _body(operation.body, references)
    return described


def _name_of(operation: Operation) -> str:
    words = re.findall(r"\w+", operation.path.replace(":path", "").replace("/api/v1", ""))
    return "_".join([operation.method.lower(), *words])


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.help,
        "required": parameter.is_required or parameter.place == "path",
        "schema": parameter.schema(),
    }
    if parameter.example is not None:
        described["example"] = parameter.example
    return described


def _body(body: RequestBody, references: dict[type, Any]) -> dict[str, Any]:
    schema = _schema(body.schema, references)
    content: dict[str, Any] = {}
    for media_type in body.media_types:
        if media_type == "application/json":
            content[media_type] = {"schema": schema, "example": msgspec.to_builtins(body.example)}
        else:
            content[media_type] = {"schema": _lines_schema(media_type, schema), "example": _as_lines(body.example)}
    return {"required": body.required, "content": content, **({"description": body.help} if body.help else {})}


def _lines_schema(media_type: str, array: dict[str, Any]) -> dict[str, Any]:
    """Describe JSON lines: a text for a client, of which each line is what an array would hold."""
    return {
        "type": "string",
        "contentMediaType": media_type,
        "contentSchema": array["items"],
        "description": "JSON lines: on each line one object, as one item of the array that `application/json` takes. "
        "Lines end with a line feed; empty ones are skipped.",
    }


def _as_lines(values: Any) -> str:
    return "\n".join(msgspec.json.encode(value).decode() for value in values) + "\n"


def _responses(operation: Operation, references: dict[type, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"schema": _schema(operation.answer, references) if operation.answer is not None else {}}
    if operation.example is not None:
        answer["example"] = plain(msgspec.to_builtins(operation.example))
    good: dict[str, Any] = {"description": "Done.", "content": {operation.media_type: answer}}
    responses: dict[str, Any] = {str(operation.status): good}
    if not operation.writes:
        good["headers"] = {"ETag": {"schema": {"type": "string"}, "description": "Changes with the content."}}
        responses["304"] = {"description": "Not changed."}
    if operation.accepted is not None:
        wait = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
        content = {operation.media_type: {"schema": operation.accepted}}
        responses["202"] = {"description": "Being fetched; ask again.", "content": content, "headers": wait}
    statuses = {*_ALWAYS, *operation.problems}
    if operation.scope != "public":
        statuses |= {401, 403}
    for status in sorted(statuses):
        responses[str(status)] = _problem(status)
    return responses


def _problem(status: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "description": TITLES[status][1] + ".",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example(status)}},
    }
    if status in (429, 503):
        described["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
    return described
