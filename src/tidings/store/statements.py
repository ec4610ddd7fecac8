"""SQL is text: named statements in `sql/`, the dialect's file overriding the common one by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_PARAMS = re.compile(r"^-- params: (.+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z_0-9]*)")
_NOW = "tidings_now()"


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement. `params` orders the values of a batch's rows."""

    name: str
    text: str
    params: tuple[str, ...]
    takes_now: bool = False
    """The clock is bound as the last value: asking it for every row of a batch costs a seventh of the settle."""


@cache
def load(dialect: str) -> dict[str, Statement]:
    """Return every statement of a dialect by name, in its driver's parameter style."""
    found: dict[str, Statement] = {}
    for file in ("common.sql", f"{dialect}.sql"):
        text = (resources.files("tidings.store") / "sql" / file).read_text("utf-8")
        parts = _NAME.split(text)[1:]
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            found[name] = _statement(name, body, dialect)
    return found


def _statement(name: str, body: str, dialect: str) -> Statement:
    header = _PARAMS.search(body)
    text = re.sub(r"^--.*$\n?", "", body, flags=re.MULTILINE).strip().rstrip(";")
    params = tuple(header[1].split()) if header else tuple(dict.fromkeys(_PARAMETER.findall(text)))
    if dialect == "sqlite":
        numbers = {param: f"?{number}" for number, param in enumerate(params, 1)}
        numbered = _PARAMETER.sub(lambda m: numbers[m[1]], text)
        return Statement(name, numbered.replace(_NOW, f"?{len(params) + 1}"), params, _NOW in numbered)
    return Statement(name, _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")), params)


def migrations(dialect: str) -> list[tuple[int, str, str]]:
    """Return (number, name, SQL) of every migration of a dialect, in order."""
    folder = resources.files("tidings.store") / "sql" / "migrations"
    found = []
    for file in folder.iterdir():
        match = re.fullmatch(rf"(\d{{4}})_(\w+)\.{dialect}\.sql", file.name)
        if match:
            found.append((int(match[1]), match[2], file.read_text("utf-8")))
    return sorted(found)
