"""How the command line speaks: tables and JSON on stdout, mistakes on stderr, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tidings.model.clock import rfc3339
from tidings.model.errors import BadInput, Misconfigured, TidingsError
from tidings.watch.logs import redact

PLAIN_WIDTH = 200
"""Where no terminal says how wide it is, nothing is folded."""

NARROW = 16
"""A column whose cells are all so short is never folded."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """End well when a reader has enough and leaves, as `head` does."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0)


console = _Console(highlight=False)
if not console.is_terminal:
    console.width = PLAIN_WIDTH


def show_json(value: Any) -> None:
    """Print a value for programs."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode() + "\n")


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """Print rows for people; numbers stand to the right; say what would be here when there is nothing."""
    listed = [[("" if cell is None else cell) for cell in row] for row in rows]
    if not listed:
        console.print(escape(empty))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        numeric = all(isinstance(row[number], (int, float)) or row[number] == "" for row in listed)
        is_short = max(len(str(row[number])) for row in listed) <= NARROW
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=is_short)
    for row in listed:
        table.add_row(*[escape(redact(str(cell))) for cell in row])
    console.print(table)


def say(text: str) -> None:
    """Print a line, or a few, for people."""
    console.print(escape(redact_lines(text)), soft_wrap=True)


def fail(message: str, code: int = 2) -> NoReturn:
    """End with a message on stderr: 1 for a failed check, 2 for bad input or configuration."""
    sys.stderr.write(f"tidings: {redact_lines(message)}\n")
    raise SystemExit(code)


@contextmanager
def while_read() -> Iterator[None]:
    """Write much to standard output; a reader who has enough and leaves is no failure."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer must not raise again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end(error: TidingsError) -> NoReturn:
    """End with an error's message: 2 where what was asked or configured is wrong, else 1."""
    fail(str(error), 2 if isinstance(error, BadInput | Misconfigured) else 1)


def redact_lines(text: str) -> str:
    """Redact, keeping line breaks (a query with the mark under it has two)."""
    return "\n".join(redact(line) for line in text.split("\n"))


def moment(ms: int | None) -> str:
    """Write a time for people."""
    return (rfc3339(ms) or "-").replace("T", " ").split(".")[0] if ms is not None else "-"
