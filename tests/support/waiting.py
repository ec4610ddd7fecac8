"""Wait for a condition, never for time: `until` in async tests, `wait_until` where there is no loop."""

from __future__ import annotations

import asyncio
import inspect
import linecache
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

PATIENCE_SECONDS = 90.0
"""Long for an idle machine: a busy one needs many times as long, and a test that passes never waits for all of it."""
LOOK_SECONDS = 0.02


class Watched(Protocol):
    """A process that must not end while something else is waited for."""

    log: Path

    @property
    def is_alive(self) -> bool: ...


async def until(
    condition: Callable[[], Any],
    *,
    seconds: float = PATIENCE_SECONDS,
    missing: Callable[[], str] | None = None,
    watching: Sequence[Watched] = (),
) -> Any:
    """Wait until a condition, or what it awaits, is true; return its value.

    The condition runs in a thread, because most of them read a database or a file. `missing` says what was waited for;
    without it the line of the condition does.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = await asyncio.to_thread(condition)
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        _check(condition, deadline, seconds, missing, watching)
        await asyncio.sleep(LOOK_SECONDS)


def wait_until(
    condition: Callable[[], Any], *, seconds: float = PATIENCE_SECONDS, missing: Callable[[], str] | None = None
) -> Any:
    """Do what `until` does, blocking this thread."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        _check(condition, deadline, seconds, missing, ())
        time.sleep(LOOK_SECONDS)
    return found


def _check(
    condition: Callable[[], Any],
    deadline: float,
    seconds: float,
    missing: Callable[[], str] | None,
    watching: Sequence[Watched],
) -> None:
    """Fail once the patience is over, or when a watched process has ended."""
    for process in watching:
        if not process.is_alive:
            raise AssertionError(f"a process ended too early: {process.log.read_text()[-2000:]}")
    if time.monotonic() > deadline:
        raise AssertionError(f"waited {seconds:g} s for {missing() if missing else _line_of(condition)}")


def _line_of(condition: Callable[[], Any]) -> str:
    code = getattr(condition, "__code__", None)
    if code is None:
        return repr(condition)
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return f"{line!r} ({Path(code.co_filename).name}:{code.co_firstlineno})"
