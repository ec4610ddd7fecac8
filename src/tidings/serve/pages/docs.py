"""The API's documentation as a page of ours: drawn from the OpenAPI document, with nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.serve.http.operations import Call, Operation
from tidings.serve.http.replies import Reply
from tidings.serve.pages.frame import Frame


class Docs:
    """One page that describes every operation."""

    def __init__(self, frame: Frame, document: dict[str, Any]) -> None:
        self._frame = frame
        titles = {name: each.title for name, each in frame.backend.pipelines.items()}
        self._sections = sections(document, titles)
        self._document = document

    def operations(self) -> list[Operation]:
        """Declare the route."""
        return [Operation("GET", "/docs", "read", self._show, "Documentation", is_page=True, any_query=True)]

    async def _show(self, call: Call) -> Reply:
        return await self._frame.page(call, "docs.html", sections=self._sections, info=self._document["info"])


def sections(document: dict[str, Any], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Group the operations by tag, each with what a reader needs; a pipeline's are called by its title."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            grouped.setdefault(operation["tags"][0], []).append(_shown(path, method, operation))
    about = {tag["name"]: tag["description"] for tag in document["tags"]}
    return [
        {
            "name": name,
            "title": titles.get(name, name.replace("_", " ").capitalize()),
            "about": about.get(name, ""),
            "operations": shown,
        }
        for name, shown in grouped.items()
    ]


def _shown(path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    good = next(status for status in operation["responses"] if status.startswith("2"))
    content = operation["responses"][good].get("content", {})
    body = operation.get("requestBody", {}).get("content", {})
    example = next((each["example"] for each in content.values() if "example" in each), None)
    sent = next((each["example"] for each in body.values() if "example" in each), None)
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation["summary"],
        "about": operation.get("description", ""),
        "scope": operation["x-tidings-scope"],
        "parameters": operation.get("parameters", []),
        "accepts": list(body),
        "sent": _pretty(sent),
        "status": good,
        "answers": list(content),
        "example": _pretty(example),
        "problems": [status for status in operation["responses"] if status >= "400"],
    }


def _pretty(value: Any) -> str | None:
    return None if value is None else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
