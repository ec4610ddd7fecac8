"""How far long work is: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from tidings.cli.output import console
from tidings.store.upkeep.backup import Progress as ShowProgress

LINE_SECONDS = 10.0


class Meter:
    """Shows one long piece of work while it goes on; nothing of it stays on a terminal."""

    def __init__(self, what: str, *, to: Console = console, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock = what, clock
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[words]}"),
        )
        self._bar = Progress(*columns, console=to, transient=True, disable=not to.is_terminal)
        self._task = self._bar.add_task(escape(what), total=None, words="")
        self._shown_at = clock()

    def __enter__(self) -> Meter:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, words: str, done: int = 0, total: int = 0) -> None:
        """Tell how far it is, in words and, where the whole is known, as a share of it."""
        if not self._bar.disable:
            self._bar.update(self._task, completed=done, total=total or None, words=escape(words))
            return
        now = self._clock()
        if now - self._shown_at >= LINE_SECONDS:
            self._shown_at = now
            share = f"{100 * done // total} %, " if total else ""
            sys.stderr.write(f"{self._what}: {share}{words}\n")


@contextmanager
def progress_bar(what: str, quiet: bool) -> Iterator[ShowProgress]:
    """Show a bar on a terminal; elsewhere nothing."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
