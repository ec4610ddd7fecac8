"""The S3 of `moto`, as a server in a process of its own: somebody else's reading of Amazon's documentation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from tests.support.environment import ROOT
from tests.support.installation import installed
from tests.support.processes import free_port
from tests.support.waiting import wait_until

PINS = ROOT / "requirements" / "s3.txt"


@contextmanager
def a_moto() -> Iterator[str]:
    """Start a server with an empty bucket `news`, and yield its address."""
    program = installed("s3", PINS, _commands) / "venv" / "bin" / "moto_server"
    port = free_port()
    server = subprocess.Popen(
        [program, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: _has_bucket(f"http://127.0.0.1:{port}/news"))
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _commands(folder: Path) -> list[list[str]]:
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
    return [
        [sys.executable, "-m", "venv", "--clear", str(folder / "venv")],
        [*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(PINS)],
    ]


def _has_bucket(address: str) -> bool:
    try:
        with urlopen(Request(address, method="PUT"), timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
