"""Comments and docstrings are in plain modern English: some old words are not used in them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest
from tests.guards.shrinking import check, sources

WORDS = re.compile(r"\b(whom|lest|anew|whoever|somebody|everybody)\b", re.IGNORECASE)
STILL_SAID = {
    # A released migration is never edited.
    "store/sql/migrations/0001_first.sqlite.sql": 1,
}
"""How many of these words each file has today."""


def comments(text: str) -> Iterator[str]:
    """Yield the comments and docstrings of a Python file; a field's docstring is a text that stands alone, too."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def sql_comments(text: str) -> Iterator[str]:
    """Yield what stands behind two dashes."""
    for line in text.splitlines():
        yield line.partition("--")[2]


def test_no_old_word_is_in_a_comment() -> None:
    found = {place: len(WORDS.findall("\n".join(comments(text)))) for place, text in sources()}
    found |= {place: len(WORDS.findall("\n".join(sql_comments(text)))) for place, text in sources(ending=".sql")}

    check(found, STILL_SAID, f"no {WORDS.pattern} in comments", __file__)


@pytest.mark.parametrize(
    "text",
    ["# lest it fall\n", '"""Whoever."""\n', 'x = 1\n"""Somebody."""\n', 'class A:\n    b: int\n    """Anew."""\n'],
)
def test_an_old_word_is_seen_wherever_it_stands(text: str) -> None:
    assert WORDS.search("\n".join(comments(text)))


def test_other_texts_are_left_alone() -> None:
    assert not WORDS.search("\n".join(comments('words = ["whom"]\nprint("anew")\n')))
    assert not WORDS.search("\n".join(sql_comments("SELECT 'whom' -- plain\n")))
