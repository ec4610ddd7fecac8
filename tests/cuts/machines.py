"""Machines as network namespaces: each with an address of its own, joined by links that can go down without a word."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine that the application's reaches by a link."""

    name: str
    address: str
    link: str

    @property
    def inside(self) -> tuple[str, ...]:
        """The words before a command that is to run there."""
        return ("ip", "netns", "exec", self.name)

    def cut(self) -> None:
        """Take the link down. Nobody is told: packets are lost, no connection is closed."""
        _ip("-n", self.name, "link", "set", self.link, "down")

    def join(self) -> None:
        """Take the link up again."""
        _ip("-n", self.name, "link", "set", self.link, "up")


@dataclass(frozen=True, slots=True)
class Machines:
    """The application's machine and those of its databases."""

    name: str
    databases: tuple[Machine, ...]

    @property
    def inside(self) -> tuple[str, ...]:
        """The words before a command that is to run on the application's machine."""
        return ("ip", "netns", "exec", self.name)


@contextmanager
def machines(databases: int) -> Iterator[Machines]:
    """Make them; skip where this user may not, fail in CI."""
    tag = secrets.token_hex(3)
    names = [f"tidings-{tag}-{part}" for part in ("app", *(f"db{n}" for n in range(databases)))]
    try:
        for name in names:
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        yield Machines(names[0], tuple(_joined(names[0], name, n) for n, name in enumerate(names[1:])))
    except (FileNotFoundError, PermissionError, subprocess.CalledProcessError) as error:
        told = getattr(error, "stderr", b"") or str(error).encode()
        if os.environ.get("CI"):
            pytest.fail(f"network namespaces cannot be made; in CI they must: {told.decode()}")
        pytest.skip(f"network namespaces cannot be made: {told.decode()}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _joined(app: str, name: str, number: int) -> Machine:
    near, far = f"near{number}", f"far{number}"
    own, address = f"10.203.{number}.1", f"10.203.{number}.2"
    _ip("link", "add", near, "netns", app, "type", "veth", "peer", "name", far, "netns", name)
    for where, device, place in ((app, near, own), (name, far, address)):
        _ip("-n", where, "addr", "add", f"{place}/30", "dev", device)
        _ip("-n", where, "link", "set", device, "up")
    hardware = _ip("-n", name, "-br", "link", "show", far).split()[2]
    # Else the lost neighbor would be noticed after seconds, and the application told that there is no route.
    _ip("-n", app, "neigh", "replace", address, "lladdr", hardware, "nud", "permanent", "dev", near)
    return Machine(name, address, far)


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], capture_output=True, check=True, text=True).stdout
