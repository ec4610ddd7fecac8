"""Every error as a problem document (RFC 9457): what happened, where, and what helps; the request is not echoed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

MEDIA_TYPE = "application/problem+json"

TITLES = {
    400: ("bad-request", "The request cannot be understood"),
    401: ("unauthorized", "A token is needed"),
    403: ("forbidden", "This is not allowed"),
    404: ("not-found", "There is nothing here"),
    405: ("method-not-allowed", "This address does not take that method"),
    408: ("too-slow", "The request took too long to arrive"),
    409: ("conflict", "This cannot be done now"),
    410: ("gone", "This is no longer there"),
    412: ("changed", "It has changed meanwhile"),
    413: ("too-large", "The body is too large"),
    415: ("wrong-type", "The body has a type that is not read here"),
    422: ("not-accepted", "The body was read and not accepted"),
    429: ("too-many-requests", "Too many requests"),
    431: ("headers-too-large", "The headers are too large"),
    500: ("internal-error", "Something went wrong in tidings"),
    503: ("unavailable", "The store does not answer"),
    507: ("full", "The store is full"),
}


class Problem(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        where: str | None = None,
        helps: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.where = where
        self.helps = helps
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})

    @property
    def title(self) -> str:
        """What kind of problem it is."""
        return TITLES.get(self.status, TITLES[400])[1]

    def document(self) -> dict[str, Any]:
        """Return the problem as JSON values."""
        name, title = TITLES.get(self.status, ("error", "This did not work"))
        document: dict[str, Any] = {
            "type": f"urn:tidings:problem:{name}",
            "title": title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.where is not None:
            document["where"] = self.where
        if self.helps is not None:
            document["help"] = self.helps
        return document | self.extra

    def body(self) -> bytes:
        """Return the encoded document."""
        return msgspec.json.encode(self.document())


SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "An error: what happened, where, and what helps.",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "where": {"type": "string", "description": "The parameter, header or line that is meant."},
        "help": {"type": "string", "description": "What to do about it."},
        "position": {"type": "integer", "description": "The offending character of a query, counted from 0."},
    },
    "required": ["type", "title", "status", "detail"],
}


def example(status: int) -> dict[str, Any]:
    """Return a problem of that status, as the documentation shows it."""
    return Problem(status, *_EXAMPLES.get(status, ("Something about the request is wrong.",))).document()


_EXAMPLES: dict[int, tuple[str]] = {
    400: ("limit must be a whole number from 1 to 500.",),
    401: ("This needs a token with the scope operate.",),
    403: ("This needs the scope operate; the token's scope is read.",),
    404: ("No such item.",),
    409: ("retry_processing is not possible from completed.",),
    410: ("This cursor is too old, or of another database.",),
    412: ("The source has changed since it was read.",),
    413: ("The body is larger than 1,048,576 bytes.",),
    415: ("Send application/json.",),
    429: ("At most 6,000 requests a minute; try again in 3 seconds.",),
    503: ("The shelf cannot be read now.",),
}
