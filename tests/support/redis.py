"""A real Redis of our own on a free port, with nothing kept."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def a_redis(folder: Path) -> Iterator[str]:
    """Start a server and yield its address."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is missing; in CI it must be there")
        pytest.skip("no redis-server is installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder))
    server = subprocess.Popen([program, "--port", str(port), *options], stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
