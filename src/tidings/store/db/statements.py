"""SQL is text: named statements in `sql/`, shared by both databases; `sql/postgres/` overrides some by name.

What only one of the databases knows stands in `sql/sqlite/` or `sql/postgres/` alone.

A statement takes single values (`:limit`). One that opens with `-- rows: id bigint, token bigint, ...` works on a whole
batch instead: it reads its rows from the table `given`, whose columns these are, and each driver supplies that table
in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

_NAME = re.compile(r"^-- (name|part): (\w+)\s*$", re.MULTILINE)
_ROWS = re.compile(r"^-- rows: (.+(?:\n--      .+)*)$", re.MULTILINE)
_PART = re.compile(r"/\* (\w+) \*/")
_COMMENT = re.compile(r"^--.*$\n?", re.MULTILINE)
PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z_0-9]*)")
TYPES = frozenset({"bigint", "text", "bytea", "double"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `given`."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement, its parameters still written as `:name`."""

    name: str
    text: str
    params: tuple[str, ...]
    """The single values it takes."""
    columns: tuple[Column, ...] = ()
    """What a row of `given` holds; empty where the statement takes no batch."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of a batch's columns."""
        return tuple(column.name for column in self.columns)


class Migration(NamedTuple):
    """One numbered step of the schema; its text never changes once it is released."""

    number: int
    name: str
    text: str


def migrations(dialect: str) -> list[Migration]:
    """Return every migration of a dialect, in order."""
    folder = resources.files("tidings.store") / "sql" / "migrations"
    named = ((re.fullmatch(rf"(\d{{4}})_(\w+)\.{dialect}\.sql", file.name), file) for file in folder.iterdir())
    return sorted(Migration(int(match[1]), match[2], file.read_text("utf-8")) for match, file in named if match)


@cache
def load(dialect: str) -> dict[str, Statement]:
    """Return every statement of a dialect by name."""
    found: dict[str, Statement] = {}
    parts: dict[str, str] = {}
    """Texts that several statements share; they stand where their name stands between `/*` and `*/`."""
    named: dict[str, str] = {}
    for text in _texts(dialect):
        pieces = _NAME.split(text)[1:]
        for sort, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            (parts if sort == "part" else named)[name] = body
    for name, body in named.items():
        found[name] = _statement(name, body, parts)
    return found


def _texts(dialect: str) -> list[str]:
    """Return the shared files, then those of the dialect, which override by name."""
    folder = resources.files("tidings.store") / "sql"
    files = [file for each in (folder, folder / dialect) for file in sorted(each.iterdir(), key=lambda file: file.name)]
    return [file.read_text("utf-8") for file in files if file.name.endswith(".sql")]


def _statement(name: str, body: str, parts: dict[str, str]) -> Statement:
    header = _ROWS.search(body)
    columns = _columns(name, header[1]) if header else ()
    text = _whole(body, parts)
    params = tuple(dict.fromkeys(PARAMETER.findall(text)))
    if twice := {column.name for column in columns} & set(params):
        raise ValueError(f"{name}: {', '.join(sorted(twice))} is both a column of the rows and a single value")
    return Statement(name, text, params, columns)


def _columns(name: str, header: str) -> tuple[Column, ...]:
    pairs = [pair.split() for pair in header.replace("\n--", " ").split(",")]
    columns = tuple(Column(*pair) for pair in pairs)
    if unknown := [column.type for column in columns if column.type not in TYPES]:
        raise ValueError(f"{name}: unknown column types {', '.join(unknown)}; known are {', '.join(sorted(TYPES))}")
    return columns


def _whole(body: str, parts: dict[str, str]) -> str:
    """Put the parts in, which may have parts of their own."""
    return _PART.sub(lambda match: _whole(parts[match[1]], parts), _bare(body))


def _bare(body: str) -> str:
    return _COMMENT.sub("", body).strip().rstrip(";")


def with_given(text: str, given: str) -> str:
    """Put the table `given` in front of a statement, which may begin with a WITH of its own."""
    return f"WITH {given}, {text.removeprefix('WITH ')}" if text.startswith("WITH ") else f"WITH {given} {text}"


def check_batch(statement: Statement, rows: Sequence[tuple[object, ...]]) -> None:
    """Refuse rows whose columns are not those of the statement."""
    fields = getattr(rows[0], "_fields", None)
    if (fields is not None and fields != statement.fields) or len(rows[0]) != len(statement.columns):
        raise TypeError(f"{statement.name} takes rows of {statement.fields}, not {fields or len(rows[0])}")
