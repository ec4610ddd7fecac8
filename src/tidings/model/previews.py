"""What a source would bring, and what would become of it: shown to people before they add it."""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.model.item import Finding


class PreviewEntry(msgspec.Struct, frozen=True):
    """One thing that was found at a source."""

    title: str
    url: str | None
    at: str | None
    text: str


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at a source found. Nothing of it was kept."""

    pipeline: str
    kind: str
    address: str
    options: dict[str, Any] = {}
    """What the kind was told besides."""
    title: str | None = None
    """What the source calls itself."""
    found: int = 0
    entries: list[PreviewEntry] = []
    """The newest ones."""
    rejected: int = 0
    note: str | None = None
    next_look_seconds: float | None = None
    error: str | None = None


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What the workflow made of one finding. Nothing of it was kept or sent."""

    steps: list[str]
    card: dict[str, Any] | None = None
    error: str | None = None


class Trial(msgspec.Struct, frozen=True):
    """A preview of a source, and what would become of its newest finding."""

    preview: Preview
    newest: Rehearsal | None = None


class Looked(msgspec.Struct, frozen=True):
    """A preview, and the newest finding as it was reported."""

    preview: Preview
    newest: Finding | None = None
