"""A transaction on SQLite: statements with numbered values, batches as a list of rows in the text."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, starmap
from typing import Any, Literal, TypeVar

import apsw

from tidings.model.clock import SystemClock
from tidings.store.db import statements
from tidings.store.db.database import Given, Row
from tidings.store.db.statements import check_batch

_CLOCK = SystemClock()
R = TypeVar("R")
WIDTHS = (1_000, 100, 10, 1)
"""How many rows of a batch go by one statement."""
TEXT_CHARS_MAX = 15_000
"""apsw remembers no statement of more than 16 KiB, and has to parse it again for every batch."""


@cache
def compiled(name: str, width: int) -> tuple[str, tuple[str, ...]]:
    """Return a statement's text for a batch of so many rows (0: none) and its single values, both by number."""
    statement = statements.load("sqlite")[name]
    columns = len(statement.columns)
    numbers = {param: f"?{number}" for number, param in enumerate(statement.params, width * columns + 1)}
    text = statements.PARAMETER.sub(lambda match: numbers[match[1]], statement.text)
    if width:
        values = ",".join([f"({','.join('?' * columns)})"] * width)
        text = statements.with_given(text, f"given ({', '.join(statement.fields)}) AS (VALUES {values})")
    return text, statement.params


@cache
def _widths(name: str) -> tuple[int, ...]:
    """Return how many rows go by one statement: many columns make its text long."""
    row_chars = 2 * len(statements.load("sqlite")[name].columns) + 2
    return tuple(width for width in WIDTHS if width * row_chars <= TEXT_CHARS_MAX)


class SqliteTx:
    """A transaction on one connection."""

    dialect: Literal["sqlite"] = "sqlite"

    def __init__(self, connection: apsw.Connection, now_ms: Callable[[], int] = _CLOCK.now_ms) -> None:
        self.connection = connection
        self._now_ms = now_ms

    def rows(self, row: Callable[..., R], name: str, /, **values: Any) -> list[R]:
        """Run a statement; return its rows."""
        text, params = compiled(name, 0)
        return list(starmap(row, self.connection.execute(text, [values[param] for param in params])))

    def row(self, row: Callable[..., R], name: str, /, **values: Any) -> R | None:
        """Run a statement; return its first row."""
        rows = self.rows(row, name, **values)
        return rows[0] if rows else None

    def value(self, name: str, /, **values: Any) -> Any:
        """Run a statement of one column; return its first value, or None."""
        text, params = compiled(name, 0)
        return next(iter(self.connection.execute(text, [values[param] for param in params])), (None,))[0]

    def returning(self, row: Callable[..., R], name: str, given: Given, /, **values: Any) -> list[R]:
        """Run a statement on a batch of rows; return what it returns."""
        return [row(*each) for cursor in self._batch(name, given, values) for each in cursor]

    def put(self, name: str, given: Given, /, **values: Any) -> int:
        """Run a statement on a batch of rows; return how many rows it changed."""
        changed = 0
        for cursor in self._batch(name, given, values):
            cursor.fetchall()
            changed += self.connection.changes()
        return changed

    def _batch(self, name: str, given: Given, values: dict[str, Any]) -> Iterator[apsw.Cursor]:
        """Run a statement for many rows at a time, then fewer, then one by one.

        A statement that SQLite runs costs as much as several rows, and apsw remembers the last few hundred statements
        it ran: with a width of its own for every batch it would have to parse nearly all of them again.
        """
        rows = list(given)
        if rows:
            check_batch(statements.load("sqlite")[name], rows)
        start = 0
        for width in _widths(name):
            text, params = compiled(name, width) if len(rows) - start >= width else ("", ())
            tail = tuple([values[param] for param in params])
            while len(rows) - start >= width:
                yield self.connection.execute(text, (*chain.from_iterable(rows[start : start + width]), *tail))
                start += width

    def run_script(self, text: str) -> None:
        """Run many statements without values."""
        for _ in self.connection.execute(text):  # stops at each row that one of them returns
            pass

    def take_time(self) -> None:
        """Do nothing: no statement is limited."""

    def scan(self, table: str, columns: Sequence[str], order: Sequence[str] = ()) -> Generator[Row]:
        """Read a whole table."""
        in_order = f" ORDER BY {_quoted(order)}" if order else ""
        yield from self.connection.execute(f"SELECT {_quoted(columns)} FROM {_quoted([table])}{in_order}")  # noqa: S608

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Write rows into a table as they are."""
        marks = ", ".join("?" * len(columns))
        self.connection.executemany(f"INSERT INTO {_quoted([table])} ({_quoted(columns)}) VALUES ({marks})", rows)  # noqa: S608

    def count_rows(self, table: str) -> int:
        """Count the rows of a table."""
        return int(next(iter(self.connection.execute(f"SELECT count(*) FROM {_quoted([table])}")))[0])  # noqa: S608

    def damage(self, check: Literal["quick_check", "integrity_check"]) -> str | None:
        """Check the file's structure with a PRAGMA of SQLite; return what is wrong, or None."""
        finding = str(next(iter(self.connection.execute(f"PRAGMA {check}(1)")))[0])
        return None if finding == "ok" else finding

    def run(self, name: str, /, **values: Any) -> int:
        """Run a statement; return how many rows it changed."""
        text, params = compiled(name, 0)
        self.connection.execute(text, [values[param] for param in params]).fetchall()
        return self.connection.changes()


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
