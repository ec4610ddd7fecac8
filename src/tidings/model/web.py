"""What comes back when we touch the web, and what we make of a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Response:
    """One answer, read to its end within the limits. Header names are lower case."""

    status: int
    url: str
    """The address that answered, after redirects."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    not_modified: bool = False
    """The stored copy is current; `body` holds it."""
    permanently_moved_to: str | None = None


class ServerEvent(NamedTuple):
    """One server-sent event."""

    name: str
    data: str


@dataclass(frozen=True, slots=True)
class Extract:
    """The readable part of a page; at most the asked number of characters, cut at a sentence."""

    text: str
    title: str | None = None
    author: str | None = None
    published_at: str | None = None
    canonical_url: str | None = None
    language: str | None = None
    description: str | None = None
    """What the page says of itself in a sentence or two."""
    html: str | None = None
    """The readable part as HTML, as its writers marked it up; only where it was asked for, and not sanitized."""
    barrier: str | None = None
    """What stands in the article's place, such as a bot check, where the page is none."""
