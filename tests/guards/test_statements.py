"""SQL stands once: both databases know the same statements, and rows have the names of their columns."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from tests.support.environment import ROOT
from tests.support.postgres import new_postgres_database
from tests.support.statements import columns_of, plan_of

from tidings.store.db import statements
from tidings.store.db.database import Tx, connect
from tidings.store.upkeep.migrate import migrate
from tidings.store.upkeep.tables import TableColumn

SOURCE = ROOT / "src"
SQL = SOURCE / "tidings" / "store" / "sql"
CORE: set[str] = set()
"""Files whose statements still have the old form (`-- params:`, columns without names): they are left out here."""
OF_ONE_DATABASE = {"sqlite/files.sql", "sqlite/texts.sql", "postgres/activity.sql", "postgres/words.sql"}
"""The only files with statements that the other database does not know; each says why at its top."""
FULL_TEXT = {"documents", "documents_text"}
"""SQLite keeps the text of the search in a virtual table beside the documents, PostgreSQL in the same table."""
WALK = re.compile(r"SEARCH (?!shelf_versions)[^'\"]*\(pipeline=\?\)|SCAN (?!given|\d|CONSTANT|clock|VIRTUAL)[^'\"]*")
OVERRIDES_MAX = 12


class Named(NamedTuple):
    """A statement as it stands in a file."""

    name: str
    file: Path
    comment: str
    """The first line below its name."""


class Query(NamedTuple):
    """A call in the store's code that takes rows from a statement."""

    place: str
    row: Any
    """What a row becomes; None for a call that takes one value."""
    statement: str


@cache
def written_in(folder: str) -> dict[str, Named]:
    """Return the statements of a folder of SQL."""
    texts = [(file, file.read_text()) for file in sorted((SQL / folder).glob("*.sql")) if file.stem not in CORE]
    found = [
        Named(match[1], file, match[2])
        for file, text in texts
        for match in re.finditer(r"^-- name: (\w+)\n(.*)$", text, re.MULTILINE)
    ]
    assert len({each.name for each in found}) == len(found), f"a statement stands twice in sql/{folder}"
    return {each.name: each for each in found}


def fits(row: Any, columns: tuple[str, ...]) -> bool:
    """Tell whether a row type's fields are the columns; others may follow that have a default."""
    needed = {
        name
        for name, parameter in inspect.signature(row).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    return tuple(inspect.signature(row).parameters)[: len(columns)] == columns and needed <= set(columns)


def queries() -> Iterator[Query]:
    """Find every `rows`, `row`, `returning` and `value` in the store."""
    drivers = ("sqlite_tx.py", "postgres_tx.py")  # these define the calls
    for file in sorted((SOURCE / "tidings" / "store").rglob("*.py")):
        if file.name in drivers:
            continue
        module = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                place = f"{file.relative_to(SOURCE)}:{node.lineno}"
                if node.func.attr in ("rows", "row", "returning") and len(node.args) > 1:
                    row = _row_type(module, node.args[0])
                    yield from (Query(place, row, name) for name in _names(place, tree, node.args[1]))
                elif node.func.attr == "value" and len(node.args) == 1:
                    yield from (Query(place, None, name) for name in _names(place, tree, node.args[0]))


def _row_type(module: str, node: ast.expr) -> Any:
    assert isinstance(node, ast.Name), f"{module}: a row type is a class, not {ast.unparse(node)}"
    return getattr(importlib.import_module(module), node.id, None) or getattr(builtins, node.id)


def _names(place: str, tree: ast.Module, node: ast.expr) -> list[str]:
    """Return the statements an argument may name: directly, by a condition, or by a variable that is assigned here."""
    if isinstance(node, ast.Name):
        assigned = [each for each in ast.walk(tree) if isinstance(each, ast.Assign)]
        values = [each.value for each in assigned if node.id in map(ast.unparse, each.targets)]
        assert values, f"{place} hides which statement it runs"
        return [name for value in values for name in _names(place, tree, value)]
    chosen = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
    names = [each.value for each in chosen if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    assert len(names) == len(chosen), f"{place} hides which statement it runs"
    return names


class Undo(Exception):
    """Ends a transaction without a trace."""


@contextmanager
def undone(url: str) -> Iterator[Tx]:
    """Open a transaction that is undone at the end, with the table that only backups have."""
    database = connect(url)
    try:
        with suppress(Undo), database.transaction() as tx:
            if tx.dialect == "sqlite":
                tx.run("create_digests")
            yield tx
            raise Undo
    finally:
        database.close()


@pytest.fixture
def both_urls(sqlite_template: Path, postgres_server: str) -> tuple[str, str]:
    """Both databases with our tables."""
    server = new_postgres_database(postgres_server)
    database = connect(server)
    migrate(database)
    database.close()
    return f"sqlite:///{sqlite_template}", server


def test_what_one_database_alone_knows_stands_in_files_of_its_own() -> None:
    assert not set(written_in("")) & set(written_in("sqlite")), "only PostgreSQL overrides"
    of_postgres = [each for each in written_in("postgres").values() if each.name not in written_in("")]
    files = {str(each.file.relative_to(SQL)) for each in (*written_in("sqlite").values(), *of_postgres)}
    assert files <= OF_ONE_DATABASE


def test_an_override_takes_the_same_values_and_rows() -> None:
    here, there = statements.load("sqlite"), statements.load("postgres")
    for name in written_in(""):
        assert set(here[name].params) == set(there[name].params), name
        assert here[name].columns == there[name].columns, name


def test_an_override_opens_with_its_reason_and_they_are_few() -> None:
    overrides = [each for each in written_in("postgres").values() if each.name in written_in("")]
    for each in overrides:
        assert re.match(r"-- (?!rows:|params:)\w", each.comment), f"{each.name} does not say why PostgreSQL differs"
    assert len(overrides) <= OVERRIDES_MAX


def test_both_databases_return_the_same_columns(both_urls: tuple[str, str]) -> None:
    with undone(both_urls[0]) as here, undone(both_urls[1]) as there:
        for name in written_in(""):
            assert columns_of(here, name) == columns_of(there, name), name


def test_every_statement_can_be_planned(database_url: str) -> None:
    with undone(database_url) as tx:
        for name in (*written_in(""), *written_in(tx.dialect)):
            # Tables are made with every migration and backup; PostgreSQL has no plan for that.
            if not statements.load(tx.dialect)[name].text.startswith("CREATE"):
                assert plan_of(tx, name), name


def test_a_batch_looks_up_its_own_rows_only(sqlite_template: Path) -> None:
    """Looking up by pipeline alone walks through all of its rows, once for every batch or even for every row of it."""
    with undone(f"sqlite:///{sqlite_template}") as tx:
        batches = [name for name in written_in("") if statements.load("sqlite")[name].columns]
        walks = {name: found[0] for name in batches if (found := WALK.search(plan_of(tx, name)))}
    assert not walks


def test_both_schemas_have_the_same_tables_and_columns(both_urls: tuple[str, str]) -> None:
    with undone(both_urls[0]) as tx:
        listed = [(column.table_name, column.name) for column in tx.rows(TableColumn, "list_columns")]
        here = {pair for pair in listed if not pair[0].startswith(("sqlite_", *FULL_TEXT))}
    with psycopg.connect(both_urls[1]) as server:
        catalog = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        there = {pair for pair in server.execute(catalog).fetchall() if pair[0] not in FULL_TEXT}
    assert here == there
    assert len(here) > 100


def test_rows_have_the_names_of_their_columns(both_urls: tuple[str, str]) -> None:
    known = {**written_in(""), **written_in("sqlite")}
    checked = 0
    with undone(both_urls[0]) as tx:
        for query in queries():
            if query.statement in known:
                columns = columns_of(tx, query.statement)
                if query.row is None or query.row in (int, str):
                    assert len(columns) == 1, f"{query.place} takes one value of {query.statement}: {columns}"
                else:
                    assert fits(query.row, columns), f"{query.place}: {query.statement} returns {columns}"
                checked += 1
    assert checked > 30


def test_no_statement_is_left_over() -> None:
    code = "".join(file.read_text() for file in (SOURCE / "tidings").rglob("*.py"))
    for folder in ("", "sqlite", "postgres"):
        for name in written_in(folder):
            assert f'"{name}"' in code, f"nothing runs {name}"
