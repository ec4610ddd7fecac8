"""Rows have names, SQL stands in .sql files, and only the two drivers know which database they talk to."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from tests.guards.shrinking import check, sources

DRIVERS = tuple(f"store/db/{name}.py" for name in ("sqlite", "sqlite_tx", "postgres", "postgres_tx"))
Rule = Callable[[ast.AST], bool]


def reads_by_position(node: ast.AST) -> bool:
    """Find `row[4]`, `row[2:]` and `rows[0][1]`; the only column of a row may be taken by `row[0]`."""
    if not isinstance(node, ast.Subscript) or not (is_row(node.value) or is_row_of_rows(node.value)):
        return False
    return isinstance(node.slice, ast.Slice) or (
        isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int) and node.slice.value > 0
    )


def is_row(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "row"


def is_row_of_rows(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "rows"


def unpacks_into_letters(node: ast.AST) -> bool:
    """Find `for i, k, y in rows` and `i, k = row`; a number or a pair of a dictionary beside something is no row."""
    if isinstance(node, ast.For | ast.comprehension):
        return not is_pairs(node.iter) and len(letters(node.target)) > 1
    return isinstance(node, ast.Assign) and any(len(letters(target)) > 1 for target in node.targets)


def is_pairs(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("items", "enumerate", "zip")


def letters(target: ast.expr) -> list[str]:
    names = target.elts if isinstance(target, ast.Tuple) else []
    return [name.id for name in names if isinstance(name, ast.Name) and len(name.id) == 1 and name.id != "_"]


def has_sql_in_python(node: ast.AST) -> bool:
    """Find calls of `.sql(…)`: they run a text instead of a named statement."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sql"


def asks_for_the_dialect(node: ast.AST) -> bool:
    """Find `dialect == …`, `database.dialect != …` and `dialect in …`."""
    if not isinstance(node, ast.Compare):
        return False
    return any(
        "dialect" in (getattr(part, "id", ""), getattr(part, "attr", "")) for part in (node.left, *node.comparators)
    )


STILL_BROKEN: dict[Rule, dict[str, int]] = {
    reads_by_position: {},
    unpacks_into_letters: {},
    has_sql_in_python: {},
    asks_for_the_dialect: {},
}
"""How often each file breaks each rule today."""
ROOMS: dict[Rule, str] = {asks_for_the_dialect: "", has_sql_in_python: ""}
"""Where a rule holds, if not in the store alone."""


@pytest.mark.parametrize("rule", STILL_BROKEN, ids=lambda rule: rule.__name__)
def test_no_file_breaks_a_rule_more_often_than_listed(rule: Rule) -> None:
    found = {
        place: sum(map(rule, ast.walk(ast.parse(text))))
        for place, text in sources(ROOMS.get(rule, "store"))
        if not (rule is asks_for_the_dialect and place in DRIVERS)
    }

    check(found, STILL_BROKEN[rule], rule.__name__.replace("_", " "), __file__)


@pytest.mark.parametrize(
    ("rule", "breaks", "keeps"),
    [
        (reads_by_position, "row[4]", "row[0]"),
        (reads_by_position, "row[2:]", "rows[1:]"),
        (reads_by_position, "rows[0][1]", "rows[0][0]"),
        (unpacks_into_letters, "for i, k in rows: pass", "for number, key in rows: pass"),
        (unpacks_into_letters, "[i for i, k in rows]", "[k for k, v in d.items()]"),
        (unpacks_into_letters, "i, k = row", "i, key = row"),
        (has_sql_in_python, "tx.sql('SELECT 1', {})", "tx.all('claim')"),
        (asks_for_the_dialect, "tx.dialect == 'sqlite'", "tx.dialect"),
        (asks_for_the_dialect, "'x' if dialect != 'sqlite' else 'y'", "dialect.name"),
    ],
)
def test_the_rule_tells_them_apart(rule: Rule, breaks: str, keeps: str) -> None:
    assert any(map(rule, ast.walk(ast.parse(breaks))))
    assert not any(map(rule, ast.walk(ast.parse(keeps))))
