"""Cloudflare's own runtime (workerd, by the npm package miniflare), with one namespace of Workers KV."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.support.installation import installed, unavailable

HERE = Path(__file__).parent
PINS = HERE / "package-lock.json"


class Runtime(msgspec.Struct):
    """Where the runtime listens."""

    api: str
    """Cloudflare's REST API, as far as it is served."""
    worker: str
    """A Worker that reads the namespace."""


@contextmanager
def a_runtime() -> Iterator[Runtime]:
    """Start the runtime with an empty namespace."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        unavailable("Node.js with npm is not installed")
    folder = installed("miniflare", PINS, _commands)
    server = subprocess.Popen(
        ["node", str(HERE / "server.mjs"), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield msgspec.json.decode(server.stdout.readline(), type=Runtime)
    finally:
        server.stdin.close()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()


def _commands(folder: Path) -> list[list[str]]:
    pins = [str(HERE / "package.json"), str(PINS)]
    # Scripts of packages are not run: what they do is not pinned, and nothing here needs it.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    return [["cp", *pins, str(folder)], ["npm", "ci", *options]]
