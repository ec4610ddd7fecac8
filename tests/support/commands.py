"""The command line in this process: what it printed and how it ended, as a shell would see it."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass

from tidings.cli.main import main
from tidings.watch.logs import log


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def tidings(*arguments: str, given: bytes = b"") -> Ended:
    """Run one command with `given` on its standard input."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    handlers, level, propagates = log.handlers[:], log.level, log.propagate
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(given), "utf-8")
    code: int | str | None = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(list(arguments))
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdin = before
        log.handlers[:], log.level, log.propagate = handlers, level, propagates
    if isinstance(code, str):
        err.write(code)
    for stream in (out, err):
        stream.flush()
    printed, said = (stream.buffer.getvalue().decode() for stream in (out, err))
    return Ended(1 if isinstance(code, str) else int(code or 0), printed, said)
