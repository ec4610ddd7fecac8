"""Gets the readable part of a page in a killable child process: a page that breaks the parser costs one attempt."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import msgspec

import tidings
from tidings.model.errors import Permanent, Transient
from tidings.model.web import Extract
from tidings.process.extract_child import LENGTH, Answer, Job

MIB = 1024 * 1024
_CHILD = "tidings.process.extract_child"
_ANSWER_BYTES_MAX = 4 * MIB


class Extractor:
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
    ) -> None:
        self._page_seconds = page_seconds
        self._html_bytes_max = html_bytes_max
        self._children = [_Child(start_seconds, memory_bytes, pages_per_child) for _ in range(children)]
        self._idle: asyncio.LifoQueue[_Child] | None = None

    async def __aenter__(self) -> Extractor:
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

    async def extract(self, html: bytes, url: str, *, max_chars: int = 10_240, charset: str | None = None) -> Extract:
        """Return the main text and what the page says of itself; an unreadable page gives empty text.

        Raise Transient if the parser ran out of time or memory or died, Permanent if it refused the page.
        """
        if len(html) > self._html_bytes_max:
            raise Permanent(f"the page is too large to read: {len(html)} bytes, {self._html_bytes_max} allowed")
        if (idle := self._idle) is None:
            raise RuntimeError("the extractor is used outside its `async with` block")
        child = await idle.get()
        try:
            answer = await child.ask(Job(html, url, max_chars, charset), self._page_seconds)
        finally:
            idle.put_nowait(child)
        if answer.extract is None:
            raise Permanent(f"the page cannot be read: the parser failed with {answer.error}")
        return answer.extract


class _Child:
    """One process that reads one page at a time. Any trouble ends it; the next page gets a new one."""

    def __init__(self, start_seconds: float, memory_bytes: int, pages_max: int) -> None:
        self._start_seconds = start_seconds
        self._memory_bytes = memory_bytes
        self._pages_max = pages_max
        self._pages = 0
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The process, if one is running."""
        return self._process.pid if self._process is not None else None

    async def ask(self, job: Job, seconds: float) -> Answer:
        """Read one page, within its time."""
        process = await self._running()
        try:
            async with asyncio.timeout(seconds):
                answer = await _exchange(process, job)
        except TimeoutError as error:
            await self.stop()
            raise Transient(f"the page took longer than {seconds:g} s to read; its parser was stopped") from error
        except (OSError, asyncio.IncompleteReadError, msgspec.MsgspecError) as error:
            limit = self._memory_bytes // MIB
            await self.stop()
            raise Transient(f"the page killed its parser (crash, or more than {limit} MiB)") from error
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
            await asyncio.shield(asyncio.ensure_future(_end(process)))

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is not None and (self._process.returncode is not None or self._pages >= self._pages_max):
            await self.stop()
        if self._process is None:
            self._process = await self._start()
            self._pages = 0
        return self._process

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", _CHILD, str(os.getpid()), str(self._memory_bytes)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_bare_environment(),
        )
        try:
            async with asyncio.timeout(self._start_seconds):
                await _read_answer(process)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, msgspec.MsgspecError) as error:
            await _end(process)
            raise Transient("the page parser could not be started; is the machine out of memory?") from error
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(_end(process)))
            raise
        return process


async def _exchange(process: asyncio.subprocess.Process, job: Job) -> Answer:
    assert process.stdin is not None
    frame = msgspec.msgpack.encode(job)
    process.stdin.write(LENGTH.pack(len(frame)) + frame)
    await process.stdin.drain()
    return await _read_answer(process)


async def _read_answer(process: asyncio.subprocess.Process) -> Answer:
    assert process.stdout is not None
    size = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))[0]
    if size > _ANSWER_BYTES_MAX:
        raise msgspec.ValidationError("a frame beyond any page's answer")
    return msgspec.msgpack.decode(await process.stdout.readexactly(size), type=Answer)


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.communicate()


def _bare_environment() -> dict[str, str]:
    """Give the child what it needs to start and none of our secrets; one thread is enough for what it computes."""
    source = str(Path(tidings.__file__).resolve().parent.parent)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV") if name in os.environ}
    return kept | {"PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
