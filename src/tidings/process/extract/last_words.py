"""What a child process printed before it died, and what its death means."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from contextlib import suppress
from dataclasses import dataclass

from tidings.model.harmless import visible

TAIL_BYTES_MAX = 8_192
WORDS_CHARS_MAX = 300
_EOF_SECONDS = 2.0
# The line that ends a Python traceback; what follows it is the rest of a message of several lines.
_RAISED = re.compile(r"^[\w.]*(Error|Exception|Interrupt|Exit|Iteration)\b", re.MULTILINE)
_MISSING = re.compile(r"^[\w.]*(ImportError|ModuleNotFoundError)\b")
# An allocation that fails inside the dynamic loader is reported as an import error.
_OUT_OF_MEMORY = re.compile(r"MemoryError|[Cc]annot allocate memory|failed to map segment|std::bad_alloc")
_TOLD_TO_END = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class LastWords:
    """Reads standard error to its end and keeps only the last of it, so that a child that prints much never blocks."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._tail = bytearray()
        self._reading = asyncio.create_task(self._read(stream))

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(TAIL_BYTES_MAX):
            self._tail += chunk
            del self._tail[:-TAIL_BYTES_MAX]

    async def end(self) -> str:
        """Wait until the stream ends and return the last of it, but not for another process that holds the pipe."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_EOF_SECONDS):
                await asyncio.shield(self._reading)
        self._reading.cancel()
        return self._tail.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Death:
    """How a child ended: `code` is its exit code, a signal's number below zero, or None if it had to be stopped."""

    code: int | None
    words: str

    @property
    def is_out_of_memory(self) -> bool:
        """Tell by the child's own code for it, by what it said, or by the signal the kernel uses for it."""
        return self.code in (os.EX_OSERR, -signal.SIGKILL) or bool(_OUT_OF_MEMORY.search(self.words))

    @property
    def is_by_request(self) -> bool:
        """Tell whether a person or a service manager ended it, as Ctrl-C ends a whole group of processes."""
        return self.code is not None and -self.code in _TOLD_TO_END

    @property
    def lacks_a_module(self) -> bool:
        """Tell whether it died because something it imports is not installed or cannot be loaded."""
        return bool(_MISSING.match(self.last_line))

    @property
    def last_line(self) -> str:
        """The exception that ended a traceback, or the last line; printable and short."""
        raised = list(_RAISED.finditer(self.words))
        lines = self.words[raised[-1].start() :] if raised else self.words.rstrip().rpartition("\n")[2]
        return " ".join(visible(lines, " ").split())[:WORDS_CHARS_MAX].rstrip(". ")

    def __str__(self) -> str:
        return f"{self._manner()}: {self.last_line}" if self.last_line else self._manner()

    def _manner(self) -> str:
        if self.code is None:
            return "it answered with something else than a frame"
        if self.code >= 0:
            return f"it exited with code {self.code}"
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-self.code).name}"
        return f"it was ended by signal {-self.code}"
