"""What the tests of the web client share: short limits, a resolver under their control, eyes on sockets and tasks."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from tests.support.waiting import until
from tidings.net.limits import MIB, FetchLimits

QUICK = FetchLimits(
    first_byte_seconds=1.0,
    total_seconds=2.0,
    wire_bytes=MIB,
    body_bytes=4 * MIB,
    endpoint_wire_bytes=MIB,
    endpoint_body_bytes=4 * MIB,
    host_wait_seconds=5.0,
    backoff_base_seconds=0.01,
    backoff_cap_seconds=0.05,
)


class Names(AbstractResolver):
    """A resolver that says what a test wants, and something else the next time if the test wants that."""

    def __init__(self, answer: Callable[[str], Sequence[str]]) -> None:
        self._answer = answer
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self._answer(host)
        ]

    async def close(self) -> None:
        pass


_WATCHERS: list[list[tuple[str, int]]] = []
_HOOKED = False


def _on_audit(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect" and _WATCHERS and isinstance(args[1], tuple):
        address, port = str(args[1][0]), int(args[1][1])
        for watcher in _WATCHERS:
            watcher.append((address, port))
        if not address.startswith("127.") and address != "::1":
            raise ConnectionRefusedError(111, "tests stay on this machine")


@contextmanager
def connects() -> Iterator[list[tuple[str, int]]]:
    """Record every connect of this process at the socket layer, and let none leave the machine."""
    global _HOOKED
    if not _HOOKED:
        sys.addaudithook(_on_audit)
        _HOOKED = True
    seen: list[tuple[str, int]] = []
    _WATCHERS.append(seen)
    try:
        yield seen
    finally:
        _WATCHERS.remove(seen)


@asynccontextmanager
async def nothing_leaks() -> AsyncIterator[None]:
    """Fail if a task or a socket outlives the block."""
    tasks, sockets = asyncio.all_tasks(), _open_sockets()
    yield

    def leaks() -> set[Any]:
        return (asyncio.all_tasks() - tasks) | (_open_sockets() - sockets)

    async def is_clean() -> bool:
        return not leaks()

    await until(is_clean, seconds=5, missing=lambda: f"the end of {leaks()}")


def _open_sockets() -> set[str]:
    found = set()
    for entry in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


def make_certificate(folder: Path, name: str, *, host: str = "IP:127.0.0.1", expired: bool = False) -> Path:
    """Make a self-signed certificate (`.crt`), and a file that holds it with its key (`.pem`)."""
    year = 2020 if expired else datetime.now(UTC).year
    paths = {end: folder / f"{name}.{end}" for end in ("key", "csr", "crt", "cnf", "idx", "srl", "pem")}
    paths["cnf"].write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={paths['idx']}\nserial={paths['srl']}\nnew_certs_dir={folder}\n"
        f"default_md=sha256\npolicy=p\nx509_extensions=e\n[p]\ncommonName=supplied\n[e]\nsubjectAltName={host}\n"
    )
    paths["idx"].touch()
    paths["srl"].write_text("01\n")
    request = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=stand-in"]
    _openssl(*request, "-keyout", paths["key"], "-out", paths["csr"])
    sign: list[object] = ["ca", "-selfsign", "-batch", "-notext", "-startdate", f"{year - 1}0101000000Z"]
    sign += ["-enddate", f"{year + 1}0101000000Z", "-config", paths["cnf"]]
    _openssl(*sign, "-keyfile", paths["key"], "-in", paths["csr"], "-out", paths["crt"])
    paths["pem"].write_text(paths["key"].read_text() + paths["crt"].read_text())
    return paths["pem"]


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
