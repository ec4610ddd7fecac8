"""SQL is text: named statements in `sql/`, the dialect's file overriding the common one by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- (name|part): (\w+)\s*$", re.MULTILINE)
_PART = re.compile(r"/\* (\w+) \*/")
_PARAMS = re.compile(r"^-- params: (.+)$", re.MULTILINE)
_SHARED = re.compile(r"^-- shared: (.+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z_0-9]*)")
_NOW = "tidings_now()"
_INSERT = re.compile(r"(INSERT INTO .*?\bVALUES\s+)(\(.*?\))(?=\nON CONFLICT|\Z)(.*)", re.DOTALL)
_RETURNING = re.compile(r"\s+RETURNING\s")
_NUMBER = re.compile(r"\?(\d+)")
_LOOK_UP = re.compile(r"SELECT :number(.*?)\s+FROM (\w+)\s+WHERE (.*)", re.DOTALL)
_TOGETHER = re.compile(r"^-- together$", re.MULTILINE)
WIDTHS = (100, 10)
"""Rows written by one statement. Each statement SQLite runs costs as much as some rows, and apsw remembers the last few
hundred it ran, counting each run: where every row is a run, it forgets all the others and has them parsed again."""
TOGETHER_MAX = 2_000
"""As many as fit into the longest text apsw remembers, 16 KiB."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement. `params` orders the values of a batch's rows."""

    name: str
    text: str
    params: tuple[str, ...]
    shared: tuple[str, ...] = ()
    """Values that are the same for all rows of a batch, and known only when it is written."""
    takes_now: bool = False
    """The clock is bound as the last value: asking it for every row of a batch costs a seventh of the settle."""
    silent: str = ""
    """The text without what it returns."""
    wide: Mapping[int, str] = field(default_factory=dict)
    """The silent text for so many rows at once, the widest first, where SQLite can have one."""
    fresh: str = ""
    """The silent text for rows that cannot be there yet: looking for them costs more than writing them."""
    fresh_wide: Mapping[int, str] = field(default_factory=dict)
    is_together: bool = False
    """All rows of a batch are to be written by one statement, on SQLite."""
    look_up: str = ""
    """The text that looks up many keys at once, on SQLite; the other values are the same for all."""

    @property
    def is_silent(self) -> bool:
        """Tell whether the statement returns nothing."""
        return self.silent == self.text and not self.text.startswith(("SELECT", "WITH"))


@cache
def load(dialect: str) -> dict[str, Statement]:
    """Return every statement of a dialect by name, in its driver's parameter style."""
    found: dict[str, Statement] = {}
    parts: dict[str, str] = {}
    """Texts that several statements share; they stand where their name stands between `/*` and `*/`."""
    for file in ("common.sql", f"{dialect}.sql"):
        text = (resources.files("tidings.store") / "sql" / file).read_text("utf-8")
        pieces = _NAME.split(text)[1:]
        for sort, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            if sort == "part":
                parts[name] = _bare(body)
            else:
                found[name] = _statement(name, _PART.sub(lambda match: parts[match[1]], body), dialect)
    return found


def _statement(name: str, body: str, dialect: str) -> Statement:
    header = _PARAMS.search(body)
    text = _bare(body)
    params = tuple(header[1].split()) if header else tuple(dict.fromkeys(_PARAMETER.findall(text)))
    found = _SHARED.search(body)
    shared = tuple(found[1].split()) if found else ()
    if dialect == "sqlite":
        numbers = {param: f"?{number}" for number, param in enumerate(params + shared, 1)}
        text = _PARAMETER.sub(lambda m: numbers[m[1]], text)
        takes_now = _NOW in text
        text = text.replace(_NOW, f"?{len(numbers) + 1}")
        silent = _silent(text)
        together = bool(_TOGETHER.search(body))
        wide = _wide(silent, len(params)) if header and not together else {}
        fresh = {width: _fresh(each) for width, each in wide.items()}
        look_up = _look_up(_bare(body), params)
        return Statement(name, text, params, shared, takes_now, silent, wide, _fresh(silent), fresh, together, look_up)
    text = _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))
    silent = _silent(text)
    return Statement(name, text, params, shared, silent=silent, fresh=_fresh(silent))


def _bare(body: str) -> str:
    return re.sub(r"^--.*$\n?", "", body, flags=re.MULTILINE).strip().rstrip(";")


def _silent(text: str) -> str:
    return _RETURNING.split(text, maxsplit=1)[0]


def _fresh(text: str) -> str:
    return text.partition("\nON CONFLICT")[0].replace("INSERT OR REPLACE", "INSERT")


def _wide(text: str, columns: int) -> dict[int, str]:
    """Write an INSERT for many rows, whose values follow each other; what they share, and the clock, come last."""
    parts = _INSERT.fullmatch(text)
    if parts is None:
        return {}
    begins, row, ends = parts[1], " ".join(parts[2].split()).replace(", ", ","), parts[3]
    return {
        width: begins + ",".join(_shifted(row, at, columns, width) for at in range(width)) + ends for width in WIDTHS
    }


def _shifted(row: str, at: int, columns: int, width: int) -> str:
    def number(match: re.Match[str]) -> str:
        own = int(match[1])
        return f"?{own + at * columns if own <= columns else own + (width - 1) * columns}"

    return _NUMBER.sub(number, row)


def together(text: str, columns: int, count: int) -> str:
    """Write a plain INSERT for just so many rows."""
    return text[: text.rindex("(")] + ",".join([f"({','.join('?' * columns)})"] * count)


def _look_up(text: str, params: tuple[str, ...]) -> str:
    """Ask for many keys at once. Their numbers come first among the `params`, and they themselves last."""
    parts = _LOOK_UP.fullmatch(text)
    if parts is None:
        return ""
    columns, table, condition = parts.groups()
    numbers = {param: f"?{number}" for number, param in enumerate(params[1:], 1)} | {"key": "asked.value"}
    found = f"SELECT asked.rowid - 1{columns} FROM carray(?{len(params) - 1}) AS asked CROSS JOIN {table} "  # noqa: S608
    return f"{found}WHERE {_PARAMETER.sub(lambda match: numbers[match[1]], condition)}"


def migrations(dialect: str) -> list[tuple[int, str, str]]:
    """Return (number, name, SQL) of every migration of a dialect, in order."""
    folder = resources.files("tidings.store") / "sql" / "migrations"
    found = []
    for file in folder.iterdir():
        match = re.fullmatch(rf"(\d{{4}})_(\w+)\.{dialect}\.sql", file.name)
        if match:
            found.append((int(match[1]), match[2], file.read_text("utf-8")))
    return sorted(found)
