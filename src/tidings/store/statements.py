"""SQL is text: named statements in `sql/`, the dialect's file overriding the common one by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
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
WIDE = 25
"""Rows written by one statement: a third cheaper than one at a time, and more gain nothing."""


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
    wide: str = ""
    """The silent text for WIDE rows at once, where SQLite can have one."""
    fresh: str = ""
    """The silent text for rows that cannot be there yet: looking for them costs more than writing them."""
    fresh_wide: str = ""

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
        wide = _wide(silent, len(params)) if header else ""
        return Statement(name, text, params, shared, takes_now, silent, wide, _fresh(silent), _fresh(wide))
    text = _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))
    silent = _silent(text)
    return Statement(name, text, params, shared, silent=silent, fresh=_fresh(silent))


def _bare(body: str) -> str:
    return re.sub(r"^--.*$\n?", "", body, flags=re.MULTILINE).strip().rstrip(";")


def _silent(text: str) -> str:
    return _RETURNING.split(text, maxsplit=1)[0]


def _fresh(text: str) -> str:
    return text.partition("\nON CONFLICT")[0].replace("INSERT OR REPLACE", "INSERT")


def _wide(text: str, width: int) -> str:
    """Write an INSERT for WIDE rows, whose values follow each other; what they share, and the clock, come last.

    The full text is written with INSERT OR REPLACE, one row at a time: it would be flushed after every wide statement.
    """
    parts = _INSERT.fullmatch(text)
    if parts is None:
        return ""

    def shifted(row: int) -> str:
        def number(match: re.Match[str]) -> str:
            own = int(match[1])
            return f"?{own + row * width if own <= width else own + (WIDE - 1) * width}"

        return _NUMBER.sub(number, parts[2])

    return parts[1] + ", ".join(shifted(row) for row in range(WIDE)) + parts[3]


def migrations(dialect: str) -> list[tuple[int, str, str]]:
    """Return (number, name, SQL) of every migration of a dialect, in order."""
    folder = resources.files("tidings.store") / "sql" / "migrations"
    found = []
    for file in folder.iterdir():
        match = re.fullmatch(rf"(\d{{4}})_(\w+)\.{dialect}\.sql", file.name)
        if match:
            found.append((int(match[1]), match[2], file.read_text("utf-8")))
    return sorted(found)
