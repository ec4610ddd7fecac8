"""The child that parses pages: reads jobs from standard input, writes answers to standard output, dies with its parent.

Frames are a four-byte length and msgpack. The first frame out says that the parser is loaded.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from importlib import import_module
from typing import Any, BinaryIO

import msgspec

from tidings.model.web import Extract

LENGTH = struct.Struct(">I")
_PR_SET_PDEATHSIG = 1
_SENTENCE = b"This small page is long enough to be read and to have a language of its own. "
SMALL_PAGE = b"<html><body><article><p>%s</p></article></body></html>" % (_SENTENCE * 4)


class PageJob(msgspec.Struct, frozen=True):
    """One page to read."""

    html: bytes
    url: str
    max_chars: int
    charset: str | None = None
    marked_up: bool = False


class ChildCall(msgspec.Struct, frozen=True):
    """One call of a function on something untrusted."""

    module: str
    function: str
    arguments: list[Any]


class Job(msgspec.Struct, frozen=True):
    """What a child is asked: to read a page, or to call a function."""

    page: PageJob | None = None
    call: ChildCall | None = None


class ChildAnswer(msgspec.Struct, frozen=True):
    """What became of a job, or that the child is ready."""

    extract: Extract | None = None
    result: bytes | None = None
    """What the function answered, as msgpack."""
    error: str | None = None
    last: bool = False
    """The child has come close to its memory limit and should be replaced."""


def main(parent: int, memory_bytes: int) -> None:
    """Serve until the parent closes the pipe or is gone."""
    _die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not reach the frames.
    os.dup2(2, 1)
    from tidings.process.extract.page import extract_page

    # The language model and the parser's tables are loaded by the first page. On a busy machine that takes longer than
    # a page may, so it happens here, within the time for the start.
    extract_page(SMALL_PAGE, "https://page.invalid/")
    _write(answers, ChildAnswer())
    while (frame := _read(jobs)) is not None:
        job = msgspec.msgpack.decode(frame, type=Job)
        extract, result, failure = None, None, None
        try:
            if job.page is not None:
                page = job.page
                extract = extract_page(page.html, page.url, page.max_chars, page.charset, marked_up=page.marked_up)
            elif job.call is not None:
                result = msgspec.msgpack.encode(called(job.call))
        except ImportError:
            raise  # No page's fault: something is not installed. The parent reads the traceback.
        except Exception as error:  # noqa: BLE001 - a page can raise anything the parsers know
            failure = type(error).__name__
        crowded = _peak_bytes() > 0.8 * memory_bytes
        if failure == "MemoryError" or (crowded and result is None and not (extract and extract.text)):
            # The parsers swallow a failed allocation and report an empty page. What is left of the heap cannot be
            # trusted either; the parent starts another child.
            os._exit(os.EX_OSERR)
        _write(answers, ChildAnswer(extract, result, failure, last=crowded))


def called(call: ChildCall) -> Any:
    """Call one of our functions by its name."""
    if not call.module.startswith("tidings."):
        raise ValueError(f"{call.module} is no module of ours")
    return getattr(import_module(call.module), call.function)(*call.arguments)


def _die_with(parent: int) -> None:
    """Ask the kernel for our end when the parent ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(os.EX_UNAVAILABLE)


def _peak_bytes() -> int:
    """Return the most address space this process ever used; 0 where that cannot be known."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmPeak"))
    except (OSError, StopIteration):
        return 0


def _read(stream: BinaryIO) -> bytes | None:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    body = stream.read(LENGTH.unpack(head)[0])
    return body if len(body) == LENGTH.unpack(head)[0] else None


def _write(stream: BinaryIO, answer: ChildAnswer) -> None:
    body = msgspec.msgpack.encode(answer)
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
