"""The parts of a parsed query; index and matcher give each the same meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

TextField = Literal["", "title", "text"]
Operator = Literal["=", ">", ">=", "<", "<="]


@dataclass(frozen=True, slots=True)
class Words:
    """A word, or several that must stand in a row; in the title, in the text, or (empty) in either."""

    text: str
    field: TextField = ""
    is_prefix: bool = False
    """The last word is only the beginning of one."""


@dataclass(frozen=True, slots=True)
class Compare:
    """A condition on a named value: `type`, `by`, `score`, `time`, `pipeline`, `url`, `site` or a declared attribute.

    For order comparisons the value is a number; times are in milliseconds.
    """

    name: str
    operator: Operator
    value: str | float


@dataclass(frozen=True, slots=True)
class InThread:
    """Within one thread: the item with this key, and what stands below it."""

    key: str


@dataclass(frozen=True, slots=True)
class Not:
    """What must not hold."""

    part: Part


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part must hold; with no parts, everything is meant."""

    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One part must hold."""

    parts: tuple[Part, ...]


Part = Words | Compare | InThread | Not | AllOf | AnyOf


def parts_of(part: Part) -> Iterator[Part]:
    """Return a part and everything inside it."""
    yield part
    inner = (part.part,) if isinstance(part, Not) else part.parts if isinstance(part, AllOf | AnyOf) else ()
    for each in inner:
        yield from parts_of(each)
