"""What a route would have sent, as a page shows it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class DrawnField(msgspec.Struct, frozen=True):
    """A field of a message."""

    name: str
    value: str
    inline: bool = True


class DrawnMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as Discord would draw it, in plain words."""

    sender: str
    title: str
    text: str = ""
    url: str | None = None
    color: str = ""
    """As #rrggbb; empty where the message has none."""
    fields: tuple[DrawnField, ...] = ()
    footer: str = ""


class RouteTrial(msgspec.Struct, frozen=True, kw_only=True):
    """How a route would have done on what is stored."""

    considered: int
    announced: int
    sent: int
    a_day: float
    per_day: dict[str, int]
    first: tuple[DrawnMessage, ...]


TryRoute = Callable[[str, str, int], RouteTrial]
"""By pipeline, query and days; raises BadInput for a query that cannot be read."""
