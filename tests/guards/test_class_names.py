"""A class name stands once in src/tidings, so that it can be searched for and means one thing."""

from __future__ import annotations

import ast
from collections import Counter

from tests.guards.shrinking import check, sources

ALLOWED = {
    "Settings": "every pipeline's module has one, and the configuration finds it by this name",
}
STILL_TWICE: dict[str, int] = {}
"""How many classes have the name today."""


def class_names(text: str) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]


def test_no_class_name_stands_twice() -> None:
    counts = Counter(name for _, text in sources() for name in class_names(text))
    twice = {name: count for name, count in counts.items() if count > 1 and name not in ALLOWED}

    check(twice, STILL_TWICE, "a class name stands once", __file__)


def test_every_allowed_name_stands_twice() -> None:
    counts = Counter(name for _, text in sources() for name in class_names(text))

    assert all(counts[name] > 1 for name in ALLOWED)


def test_classes_inside_others_are_seen() -> None:
    assert class_names("class A:\n    class B: ...\ndef f():\n    class C: ...") == ["A", "B", "C"]
