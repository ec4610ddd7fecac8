"""Gets the readable part of a page in a killable child process: a page that breaks the parser costs one attempt."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec

import tidings
from tidings.model.errors import Misconfigured, Permanent, TidingsError, Transient
from tidings.model.web import Extract
from tidings.process.extract.child import LENGTH, SMALL_PAGE, ChildAnswer, ChildCall, Job, PageJob
from tidings.process.extract.last_words import Death, LastWords

MIB = 1024 * 1024
CHILD = (sys.executable, "-m", "tidings.process.extract.child")
_ANSWER_BYTES_MAX = 64 * MIB
_EXIT_SECONDS = 2.0
_BROKEN_SECONDS = 60.0
"""How long a parser that cannot start is not started again: every waiting item would start one, in vain."""
_NO_ANSWER = (OSError, asyncio.IncompleteReadError, msgspec.MsgspecError)
_NO_PROGRAM = frozenset({errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR})
_REINSTALL = "install tidings again with everything it depends on, then try: tidings doctor --offline"

Answer = TypeVar("Answer")


class ChildExtractor:
    """A small pool of children, started when first needed; an async context manager."""

    def __init__(
        self,
        *,
        children: int = 1,
        page_seconds: float = 10.0,
        start_seconds: float = 60.0,
        memory_bytes: int = 512 * MIB,
        html_bytes_max: int = 20 * MIB,
        pages_per_child: int = 1_000,
        program: Sequence[str] = CHILD,
    ) -> None:
        self._page_seconds = page_seconds
        self._html_bytes_max = html_bytes_max
        self._children = [_Child(program, start_seconds, memory_bytes, pages_per_child) for _ in range(children)]
        self._idle: asyncio.LifoQueue[_Child] | None = None

    async def __aenter__(self) -> ChildExtractor:
        # Last in, first out: the child that just read a page is warm, and the others may stay unstarted.
        self._idle = asyncio.LifoQueue()
        for child in self._children:
            self._idle.put_nowait(child)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._idle = None
        await asyncio.gather(*(child.stop() for child in self._children))

    def child_pids(self) -> list[int]:
        """Return the processes running now, for those who watch them."""
        return [child.pid for child in self._children if child.pid is not None]

    async def extract(
        self, html: bytes, url: str, *, max_chars: int = 10_240, charset: str | None = None, marked_up: bool = False
    ) -> Extract:
        """Return the main text and what the page says of itself; an unreadable page gives empty text.

        Raise Transient if the parser ran out of time or memory or died, Permanent if it refused the page, and
        Misconfigured if it cannot even start.
        """
        if len(html) > self._html_bytes_max:
            raise Permanent(f"the page is too large to read: {len(html)} bytes, {self._html_bytes_max} allowed")
        answer = await self._ask(Job(PageJob(html, url, max_chars, charset, marked_up)), self._page_seconds)
        if answer.extract is None:
            raise Permanent(f"the page cannot be read: the parser failed with {answer.error}")
        return answer.extract

    async def apart(
        self, answer: type[Answer], function: Callable[..., Answer], *arguments: Any, seconds: float = 30
    ) -> Answer:
        """Call a function of one of our modules in a child, on input that nobody vouches for; return its answer.

        Raise Transient if it ran out of time or memory or died, Permanent for what it raised.
        """
        call = ChildCall(function.__module__, function.__name__, list(arguments))
        told = await self._ask(Job(call=call), seconds)
        if told.result is None:
            raise Permanent(f"the document cannot be read: the parser failed with {told.error}")
        return msgspec.msgpack.decode(told.result, type=answer)

    async def _ask(self, job: Job, seconds: float) -> ChildAnswer:
        if (idle := self._idle) is None:
            raise RuntimeError("the extractor is used outside its `async with` block")
        child = await idle.get()
        try:
            return await child.ask(job, seconds)
        finally:
            idle.put_nowait(child)

    async def check(self) -> None:
        """Read a small page with each child; raise what stands in the way."""
        pages = [self.extract(SMALL_PAGE, "https://page.invalid/") for _ in self._children]
        for page in await asyncio.gather(*pages):
            if not page.text:
                raise Misconfigured(f"the page parser starts but reads nothing of a sound page; {_REINSTALL}")


class _Child:
    """One process that reads one page at a time. Any trouble ends it; the next page gets a new one."""

    def __init__(self, program: Sequence[str], start_seconds: float, memory_bytes: int, pages_max: int) -> None:
        self._program = program
        self._start_seconds = start_seconds
        self._memory_bytes = memory_bytes
        self._pages_max = pages_max
        self._pages = 0
        self._process: _Process | None = None
        self._broken: Misconfigured | None = None
        self._broken_until = 0.0

    @property
    def pid(self) -> int | None:
        """The process, if one is running."""
        return self._process.pid if self._process is not None else None

    async def ask(self, job: Job, seconds: float) -> ChildAnswer:
        """Read one page, within its time."""
        process = await self._running()
        try:
            async with asyncio.timeout(seconds):
                answer = await process.exchange(job)
        except TimeoutError as error:
            await self.stop()
            raise Transient(f"the page took longer than {seconds:g} s to read; its parser was stopped") from error
        except _NO_ANSWER as error:
            self._process = None
            raise self._after_page(await process.autopsy()) from error
        except BaseException:
            # Cancelled half way: an answer to nobody would be taken for the next page's.
            await self.stop()
            raise
        self._pages += 1
        if answer.last:
            await self.stop()
        return answer

    async def stop(self) -> None:
        """End the process and wait until it is gone, also when the waiting itself is cancelled."""
        process, self._process = self._process, None
        if process is not None:
            await process.end()

    async def _running(self) -> _Process:
        if self._process is not None and (self._process.has_ended or self._pages >= self._pages_max):
            await self.stop()
        if self._process is None:
            self._process = await self._started()
            self._pages = 0
        return self._process

    async def _started(self) -> _Process:
        now = asyncio.get_running_loop().time()
        if self._broken is not None and now < self._broken_until:
            raise Misconfigured(str(self._broken)) from self._broken
        self._broken = None
        try:
            return await self._start()
        except Misconfigured as error:
            self._broken, self._broken_until = error, now + _BROKEN_SECONDS
            raise

    async def _start(self) -> _Process:
        try:
            process = await _Process.start((*self._program, str(os.getpid()), str(self._memory_bytes)))
        except OSError as error:
            raise _not_started(error, self._program[0]) from error
        try:
            async with asyncio.timeout(self._start_seconds):
                await process.answer()
        except TimeoutError as error:
            await process.end()
            raise Transient(f"the page parser did not start within {self._start_seconds:g} s") from error
        except _NO_ANSWER as error:
            raise self._after_start(await process.autopsy()) from error
        except BaseException:
            await process.end()
            raise
        return process

    def _after_start(self, death: Death) -> TidingsError:
        if death.is_out_of_memory or death.is_by_request:
            return Transient(f"the page parser could not be started: {self._manner(death)}")
        return Misconfigured(f"the page parser cannot start: {death}; {_REINSTALL}")

    def _after_page(self, death: Death) -> TidingsError:
        if death.lacks_a_module and not death.is_out_of_memory:
            return Misconfigured(f"the page parser is not complete: {death}; {_REINSTALL}")
        return Transient(f"the page killed its parser: {self._manner(death)}")

    def _manner(self, death: Death) -> str:
        limit = f"out of memory, of which it may have {self._memory_bytes // MIB} MiB"
        return f"{limit} ({death})" if death.is_out_of_memory else str(death)


class _Process:
    """A running child: frames in, frames out, and what it says besides."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._words = LastWords(process.stderr)

    @classmethod
    async def start(cls, command: Sequence[str]) -> _Process:
        """Start a child; whether it is ready is its first answer."""
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, env=_bare_environment()
            )
        )

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Tell whether it is gone already."""
        return self._process.returncode is not None

    async def exchange(self, job: Job) -> ChildAnswer:
        """Send a page, return what became of it."""
        frame = msgspec.msgpack.encode(job)
        self._stdin.write(LENGTH.pack(len(frame)) + frame)
        await self._stdin.drain()
        return await self.answer()

    async def answer(self) -> ChildAnswer:
        """Read the next answer."""
        size = LENGTH.unpack(await self._stdout.readexactly(LENGTH.size))[0]
        if size > _ANSWER_BYTES_MAX:
            raise msgspec.ValidationError("a frame beyond any page's answer")
        return msgspec.msgpack.decode(await self._stdout.readexactly(size), type=ChildAnswer)

    async def autopsy(self) -> Death:
        """Give it a moment to end by itself, end it otherwise; say how it died."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_SECONDS):
                await self._process.wait()
        code = self._process.returncode
        return Death(code, await self.end())

    async def end(self) -> str:
        """End it and wait until it is gone, also when the waiting itself is cancelled; return its last words."""
        return await asyncio.shield(asyncio.ensure_future(self._end()))

    async def _end(self) -> str:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._stdin.close()
        # An unread answer would keep the pipe open, and with it the process from counting as gone.
        await asyncio.gather(self._stdout.read(), self._process.wait())
        return await self._words.end()


def _not_started(error: OSError, program: str) -> TidingsError:
    """Tell a program that is not there from a machine that has no room for another process just now."""
    if error.errno in _NO_PROGRAM:
        return Misconfigured(f"the page parser cannot start: {program}: {error.strerror}; {_REINSTALL}")
    return Transient(f"the page parser could not be started: {error.strerror}; too many processes, too little memory?")


def _bare_environment() -> dict[str, str]:
    """Give the child what it needs to start and none of our secrets; one thread is enough for what it computes."""
    source = str(Path(tidings.__file__).resolve().parent.parent)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV") if name in os.environ}
    return kept | {"PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
