"""The command line as a process of its own: what it prints, where it listens, how it ends."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.support.waiting import wait_until

WAIT_SECONDS = 90.0


class Running:
    """A started command; its standard output is read as it comes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.started = time.monotonic()
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    @property
    def out(self) -> str:
        return "".join(self.lines)

    def printed(self, pattern: str) -> str:
        """Wait for the command to print something; return its first group."""
        found: re.Match[str] = wait_until(
            lambda: re.search(pattern, self.out),
            missing=lambda: f"{pattern!r} in {self.out!r}, {self._state()}",
        )
        return found[1]

    def _state(self) -> str:
        code = self.process.poll()
        return "still running" if code is None else f"ended with {code}"

    def ended(self) -> tuple[int, str, str]:
        """Wait for the end; return the exit code and both outputs."""
        assert self.process.stderr is not None
        code = self.process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        return code, self.out, self.process.stderr.read()


@contextmanager
def started(*command: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Running]:
    """Start a command; whatever happens, it does not outlive the test."""
    with subprocess.Popen(
        command, cwd=folder, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


def tidings_process(*arguments: str) -> tuple[str, ...]:
    """Return the command line of tidings in a process of its own."""
    return (sys.executable, "-m", "tidings", *arguments)


def fetched(url: str) -> bytes:
    """Get a page of a server on this machine."""
    with urllib.request.urlopen(url, timeout=30) as response:
        body: bytes = response.read()
        return body


def posted(url: str, value: object) -> object:
    """Post JSON to a server on this machine; return its JSON answer."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, msgspec.json.encode(value), headers, method="POST")
    with urllib.request.urlopen(request, timeout=30) as response:
        return msgspec.json.decode(response.read())
